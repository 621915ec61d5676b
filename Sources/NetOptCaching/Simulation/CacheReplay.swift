/// The result of a replay: all requests of a trace, made to a simulated cache with one eviction policy and
/// capacity.
package struct CacheReplay: Hashable, Sendable {
  /// The eviction policy.
  package let policy: SimulatedPolicy
  /// The capacity of the simulated cache, in bytes.
  package let capacity: Int
  /// The number of hits.
  package private(set) var hits = 0
  /// The total size of the objects of all hits, in bytes.
  package private(set) var hitBytes: UInt128 = 0
  /// The number of requests.
  package let requests: Int
  /// The total size of the objects of all requests, in bytes. The sum may need more than 64 bits.
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

  /// The number of hits divided by the number of requests.
  package var hitRatio: Double { Double(hits) / Double(requests) }
  /// The bytes of the hits divided by the bytes of all requests; 0 when all sizes are 0.
  package var byteHitRatio: Double { bytes == 0 ? 0 : Double(hitBytes) / Double(bytes) }
}
