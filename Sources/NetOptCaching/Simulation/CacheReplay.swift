/// What a policy would have done with a trace.
package struct CacheReplay: Hashable, Sendable {
  /// The policy.
  package let policy: SimulatedPolicy
  /// The capacity in bytes.
  package let capacity: Int
  /// How many requests were hits.
  package private(set) var hits = 0
  /// How many bytes the hits had.
  package private(set) var hitBytes: UInt128 = 0
  /// How many requests there were.
  package let requests: Int
  /// The total size of all requests, in bytes. One size fits into 63 bits; the sum may not.
  package private(set) var bytes: UInt128 = 0

  /// Replays a trace.
  package init(_ trace: CacheTrace, _ policy: SimulatedPolicy, capacity: Int) {
    self.policy = policy
    self.capacity = capacity
    requests = trace.requests.count
    var cache = policy.cache(capacity: capacity)
    for request in trace.requests {
      bytes += UInt128(request.size)
      if cache.request(request.key, size: request.size) {
        hits += 1
        hitBytes += UInt128(request.size)
      }
    }
  }

  /// Hits by requests.
  package var hitRatio: Double { Double(hits) / Double(requests) }
  /// Bytes of hits by bytes of requests.
  package var byteHitRatio: Double { bytes == 0 ? 0 : Double(hitBytes) / Double(bytes) }
}
