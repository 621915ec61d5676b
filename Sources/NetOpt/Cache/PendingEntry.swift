import NetOptCaching
import NetOptCore

/// A response to store once its body is complete.
struct PendingEntry: Sendable {
  let cache: ResponseCache
  /// The fetch of the response, when other calls may wait for it.
  let leader: InFlightFetches.Leader?
  let key: CacheKey
  let selectors: [CacheEntry.Selector]
  let status: Int
  let fields: HeaderFields
  /// When the request was sent and when the head of the response came, in milliseconds since 1970.
  let requested: Int64
  let received: Int64
  let declaredExpiry: Int64?
  let resourceVersion: Int64?
  let begun: MonotonicInstant
  /// The deadline of the call that fetches the response, or `nil`.
  let deadline: MonotonicInstant?
  /// The number of changes of the resource when the fetch began.
  let changes: UInt32
  /// Whether to store the response; otherwise only the waiting calls get it.
  let isStored: Bool

  /// The maximum size of the body in bytes.
  var limit: Int { cache.entryLimit }

  /// Stores the response, and gives it to the waiting calls.
  func complete(_ body: [UInt8]) {
    let entry = CacheEntry(
      key: key, selectors: selectors, status: status, fields: fields, body: body.fitted, requested: requested,
      received: received, declaredExpiry: declaredExpiry, resourceVersion: resourceVersion,
      fetchMicroseconds: (cache.timeSource.now() - begun).microseconds)
    if isStored { cache.insert(entry, unlessChangedSince: changes, begun: begun) }
    leader?.complete(isStored ? .entry(entry) : .serverError(entry))
  }

  /// Handles a body that is too large to keep: forgets the stored responses, which are older.
  func discardTooLarge() {
    if isStored { cache.forget(.all, for: key, begun: begun) }
    leader?.complete(.unshared)
  }

  /// Handles a body whose reader released it before its end: nobody reads the body of a redirect, and a
  /// caller may have seen enough. Forgets the stored responses that the new one would replace, because they
  /// are older.
  func discardUnread() {
    if isStored { cache.forget(.overlapping(selectors), for: key, begun: begun) }
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
