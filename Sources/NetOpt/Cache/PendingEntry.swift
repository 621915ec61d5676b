import NetOptCaching
import NetOptCore

/// A response whose body is still on its way. At the end of the body, the cache stores the response and gives
/// it to the waiting calls.
struct PendingEntry: Sendable {
  let cache: ResponseCache
  /// Passes the outcome of the fetch to the calls that wait for it; `nil` when no other call may wait.
  let leader: InFlightFetches.Leader?
  let key: CacheKey
  /// The request's values of the fields that the response's `Vary` names (`CacheEntry.selectors`).
  let selectors: [CacheEntry.Selector]
  let status: Int
  /// The fields to store (`StoredFields.stored`).
  let fields: HeaderFields
  /// When the request was sent, in milliseconds since 1970.
  let requested: Int64
  /// When the head of the response came, in milliseconds since 1970.
  let received: Int64
  /// When the response becomes stale by the caller's declaration, in milliseconds since 1970; `nil` without a
  /// declaration.
  let declaredExpiry: Int64?
  /// The version of the resource in versioned mode; otherwise `nil`.
  let resourceVersion: Int64?
  /// When the attempt that got the response sent its request, by the monotonic clock (`Fetch.sent`).
  let begun: MonotonicInstant
  /// The deadline of the call that fetches the response; `nil` for a call without a time limit.
  let deadline: MonotonicInstant?
  /// The number of changes that counted for the key when the fetch began (`ResourceChanges.changeCount`). A
  /// POST, for example, is a change. Includes the changes that the call's own request made. If the count is
  /// different at the end of the body, the response may be out of date, and the cache does not store it.
  let changeCount: UInt32
  /// The value of `ResourceChanges.removalCount` when the fetch began.
  let removalCount: UInt64
  /// The number by which a removal finds the response (`CacheEntry.resource`).
  let resource: Int64?
  /// Whether to store the response. If false, it is a 5xx response, which only goes to the waiting calls.
  let shouldStore: Bool

  /// The maximum size of the body in bytes.
  var limit: Int { cache.entryLimit }

  /// Handles the end of the body: stores the response if `shouldStore`, and gives it to the waiting calls.
  func complete(_ body: [UInt8]) {
    let entry = CacheEntry(
      key: key, selectors: selectors, status: status, fields: fields, body: body.fitted, requested: requested,
      received: received, declaredExpiry: declaredExpiry, resourceVersion: resourceVersion,
      resource: resource, fetchMicroseconds: (cache.timeSource.now() - begun).microseconds)
    if shouldStore {
      cache.insert(entry, unlessChangedSince: changeCount, removals: removalCount, begun: begun)
    }
    leader?.complete(shouldStore ? .entry(entry) : .serverError(entry))
  }

  /// Handles a body that is too large to keep. Forgets the stored responses of the key, which this response
  /// would have replaced. The waiting calls fetch for themselves.
  func discardTooLarge() {
    if shouldStore { cache.forget(.all, for: key, begun: begun) }
    leader?.complete(.unshared)
  }

  /// Handles a body that its reader released before the end, such as the body of a redirect. Forgets the
  /// stored responses that this response would have replaced.
  func discardUnread() {
    if shouldStore { cache.forget(.overlapping(selectors), for: key, begun: begun) }
  }

  /// Handles an error while the body was received: passes it to the waiting calls.
  func fail(_ error: NetOptError) {
    leader?.fail(error, deadline: deadline, at: cache.timeSource.now())
  }
}

extension [UInt8] {
  /// An array with the same bytes and without much unused capacity. The original array may have much unused
  /// capacity, and the cache keeps the body for a long time.
  fileprivate var fitted: [UInt8] {
    guard capacity - count > count / 16 + 64 else { return self }
    return [UInt8](unsafeUninitializedCapacity: count) { room, filled in
      withUnsafeBytes { UnsafeMutableRawBufferPointer(room).copyMemory(from: $0) }
      filled = count
    }
  }
}
