import NetOpt
import NetOptCore

/// The figures of a storm.
package struct StormReport: Sendable, CustomStringConvertible {
  /// The seed of the storm.
  package var seed: UInt64 = 0
  /// The duration of the storm in seconds.
  package var seconds = 0.0
  /// The number of calls that have ended.
  package var requests = 0
  /// The number of responses that were read to their end, by HTTP version or as "from a cache".
  package var answers: [String: Int] = [:]
  /// The number of failed calls, by error code.
  package var errors: [String: Int] = [:]
  /// The number of calls that were completely within a calm period.
  package var calmRequests = 0
  /// The number of requests that reached nginx; repeated requests count each time.
  package var arrivals = 0
  /// The number of responses that the caller dropped unread.
  package var abandoned = 0
  /// The number of calls by method.
  package var methods: [String: Int] = [:]
  /// The number of calls by host name and port.
  package var hosts: [String: Int] = [:]
  /// The figures of the splice.
  package var splice = Splice.Figures()
  /// The number of responses in the caches at the end.
  package var cacheEntries = 0
  /// The number of calls that were not judged for a late end, because the machine itself was too late.
  package var unjudged = 0
  /// Whether the storm could change the network.
  package var hasNetworkChanges = false
  /// The numbers of disturbances.
  var chaos = ChaosInjector.Figures()
  /// The memory of the process in bytes, measured every 30 s.
  package var memory: [Int] = []
  /// The number of violations of each kind.
  package var violations: [Violation.Kind: Int] = [:]

  package init() {}

  /// Counts a call that has ended.
  mutating func add(_ plan: RequestPlan, _ outcome: StormCall.Outcome, isCalm: Bool) {
    requests += 1
    methods[plan.method.rawValue, default: 0] += 1
    hosts["\(plan.host.name)/\(plan.host.port)", default: 0] += 1
    if isCalm { calmRequests += 1 }
    switch outcome {
    case .answered(let version, let isFromCache):
      answers[isFromCache ? "from a cache" : "HTTP/\(version)", default: 0] += 1
    case .failed(let error): errors[error.code.description, default: 0] += 1
    case .abandoned: abandoned += 1
    }
  }

  package var description: String {
    func list(_ counts: [String: Int]) -> String {
      counts.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
    }
    let changes = hasNetworkChanges ? "\(chaos.networkChanges)" : "no (takes root)"
    let violated = Violation.Kind.allCases.compactMap { kind in
      violations[kind].map { "\(kind.rawValue) \($0)" }
    }
    let rate = seconds > 0 ? Int(Double(requests) / seconds) : 0
    return """
      seed \(seed): \(requests) requests in \(Int(seconds)) s, \(rate)/s, \(calmRequests) of them in calm
      answers: \(list(answers)); let go unread: \(abandoned)
      errors: \(list(errors))
      methods: \(list(methods))
      hosts: \(list(hosts))
      servers: \(arrivals) requests arrived over \(splice.connections) connections; \(chaos.kills) kills, \
      \(chaos.stops) stops, \(chaos.freezes) freezes
      connections: \(splice.resets) reset, \(splice.closes) closed, \(splice.stalls) stalled, \(splice.refused) refused
      clients: \(chaos.replacements) replaced; network changes: \(changes)
      caches: \(cacheEntries) answers in the end
      machine: \(unjudged) calls not judged for lateness, because it was late itself
      memory: \(memory.map { "\($0 >> 20)" }.joined(separator: ", ")) MiB
      violations: \(violated.isEmpty ? "none" : violated.joined(separator: ", "))
      """
  }
}
