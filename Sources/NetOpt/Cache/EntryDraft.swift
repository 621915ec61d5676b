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
  let fields: HTTPFields
  /// When it was asked for and when its head came: milliseconds since 1970.
  let requested: Int64
  let received: Int64
  let declaredExpiry: Int64?
  let resourceVersion: Int64?
  let begun: MonotonicInstant
  /// Whether it is stored; otherwise only those who wait for it have it.
  let isStored: Bool

  /// The most bytes that its body may have.
  var limit: Int { cache.entryLimit }

  /// Stores it, and hands it to those who wait.
  func complete(_ body: [UInt8]) {
    let entry = CacheEntry(
      key: key, selectors: selectors, status: status, fields: fields, body: body, requested: requested,
      received: received, declaredExpiry: declaredExpiry, resourceVersion: resourceVersion,
      fetchMicroseconds: (cache.timeSource.now() - begun).microseconds)
    if isStored, ticket?.isInvalidated != true { cache.insert(entry) }
    ticket?.complete(isStored ? .entry(entry) : .trouble(entry))
  }

  /// Its body did not come.
  func failed(_ error: NetOptError) {
    // Who cancelled did so for himself.
    if error.code == .cancelled { ticket?.handOver() } else { ticket?.complete(.failed(error)) }
  }
}
