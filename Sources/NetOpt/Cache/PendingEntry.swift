import NetOptCaching
import NetOptCore

/// A response whose body is not complete. At the end of the body, the response is stored and goes to the
/// waiting calls.
struct PendingEntry: Sendable {
  let cache: ResponseCache
  /// Passes the outcome of the fetch to the calls that wait for it; `nil` when no other call may wait.
  let leader: InFlightFetches.Leader?
  let key: CacheKey
  let selectors: [CacheEntry.Selector]
  let status: Int
  let fields: HeaderFields
  /// When the request was sent, in milliseconds since 1970.
  let requested: Int64
  /// When the head of the response came, in milliseconds since 1970.
  let received: Int64
  /// As in `CacheEntry`.
  let declaredExpiry: Int64?
  /// As in `CacheEntry`.
  let resourceVersion: Int64?
  /// When the request was sent, by the monotonic clock.
  let begun: MonotonicInstant
  /// The deadline of the call that fetches the response, or `nil`.
  let deadline: MonotonicInstant?
  /// The count of `ResourceChanges` for the key when the fetch began. If the count has grown, a change has
  /// overtaken the response.
  let changeCount: UInt32
  /// Whether to store the response. If not, the response only goes to the waiting calls.
  let shouldStore: Bool

  /// The maximum size of the body in bytes.
  var limit: Int { cache.entryLimit }

  /// Handles a complete body: stores the response if `shouldStore`, and gives it to the waiting calls.
  func complete(_ body: [UInt8]) {
    let entry = CacheEntry(
      key: key, selectors: selectors, status: status, fields: fields, body: body.fitted, requested: requested,
      received: received, declaredExpiry: declaredExpiry, resourceVersion: resourceVersion,
      fetchMicroseconds: (cache.timeSource.now() - begun).microseconds)
    if shouldStore { cache.insert(entry, unlessChangedSince: changeCount, begun: begun) }
    leader?.complete(shouldStore ? .entry(entry) : .serverError(entry))
  }

  /// Handles a body that is too large to keep: forgets the stored responses, which are older.
  func discardTooLarge() {
    if shouldStore { cache.forget(.all, for: key, begun: begun) }
    leader?.complete(.unshared)
  }

  /// Handles a body whose reader released it before its end. For example, nobody reads the body of a
  /// redirect. Forgets the stored responses that the new response would replace, because they are older.
  func discardUnread() {
    if shouldStore { cache.forget(.overlapping(selectors), for: key, begun: begun) }
  }

  /// Handles a body that failed.
  func fail(_ error: NetOptError) {
    leader?.fail(error, deadline: deadline, at: cache.timeSource.now())
  }
}

extension [UInt8] {
  /// The same bytes in an array without much unused capacity. The array that received the body may be too
  /// large, and the cache keeps the body for a long time.
  fileprivate var fitted: [UInt8] {
    guard capacity - count > count / 16 + 64 else { return self }
    return [UInt8](unsafeUninitializedCapacity: count) { room, filled in
      withUnsafeBytes { UnsafeMutableRawBufferPointer(room).copyMemory(from: $0) }
      filled = count
    }
  }
}
