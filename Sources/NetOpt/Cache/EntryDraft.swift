import NetOptCaching
import NetOptCore

/// A response that is to be stored when its body is there.
struct EntryDraft: Sendable {
  let cache: ResponseCache
  /// The fetch that gives it, when others wait for it.
  let ticket: Flights.Ticket?
  let key: CacheKey
  let selectors: [CacheEntry.Selector]
  let status: Int
  let fields: HeaderFields
  /// When it was asked for and when its head came: milliseconds since 1970.
  let requested: Int64
  let received: Int64
  let declaredExpiry: Int64?
  let resourceVersion: Int64?
  let begun: MonotonicInstant
  /// When the call that fetches it has to be over, or `nil`.
  let deadline: MonotonicInstant?
  /// How often the key's resource had been changed when the fetch began.
  let changes: UInt32
  /// Whether it is stored; otherwise only those who wait for it have it.
  let isStored: Bool

  /// The most bytes that its body may have.
  var limit: Int { cache.entryLimit }

  /// Stores it, and hands it to those who wait.
  func complete(_ body: [UInt8]) {
    let entry = CacheEntry(
      key: key, selectors: selectors, status: status, fields: fields, body: body.fitted, requested: requested,
      received: received, declaredExpiry: declaredExpiry, resourceVersion: resourceVersion,
      fetchMicroseconds: (cache.timeSource.now() - begun).microseconds)
    if isStored { cache.insert(entry, unlessChangedSince: changes, begun: begun) }
    ticket?.complete(isStored ? .entry(entry) : .trouble(entry))
  }

  /// Its body is larger than what is kept. What it replaces is older.
  func isTooLarge() {
    if isStored { cache.forget(.all, for: key, begun: begun) }
    ticket?.complete(.unshared)
  }

  /// Its reader has let go of it before its end: a redirect's body is not read, and a caller may have seen enough. What it replaces is older.
  func isLetGo() {
    if isStored { cache.forget(.overlapping(selectors), for: key, begun: begun) }
  }

  /// Its body did not come.
  func failed(_ error: NetOptError) {
    ticket?.fail(error, deadline: deadline, at: cache.timeSource.now())
  }
}

extension [UInt8] {
  /// The same bytes without much spare room: a body is received into what was not measured for it, and kept for long.
  fileprivate var fitted: [UInt8] {
    guard capacity - count > count / 16 + 64 else { return self }
    return [UInt8](unsafeUninitializedCapacity: count) { room, filled in
      withUnsafeBytes { UnsafeMutableRawBufferPointer(room).copyMemory(from: $0) }
      filled = count
    }
  }
}
