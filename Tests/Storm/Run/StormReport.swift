import NetOpt
import NetOptCore

/// The figures of a storm.
package struct StormReport: Sendable, CustomStringConvertible {
  package var seed: UInt64 = 0
  package var seconds = 0.0
  package var requests = 0
  package var answers: [String: Int] = [:]
  package var errors: [String: Int] = [:]
  package var calmRequests = 0
  package var arrivals = 0
  package var abandoned = 0
  package var methods: [String: Int] = [:]
  package var hosts: [String: Int] = [:]
  package var splice = Splice.Figures()
  /// The number of responses in the caches at the end.
  package var cacheEntries = 0
  /// The number of calls that may have ended late while the machine itself was late.
  package var unjudged = 0
  package var hasNetworkChanges = false
  var chaos = ChaosInjector.Figures()
  package var memory: [Int] = []
  package var violations: [Violation.Kind: Int] = [:]

  package init() {}

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
