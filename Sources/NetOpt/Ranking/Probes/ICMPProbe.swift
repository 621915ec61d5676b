import NetOptCore
import NetOptEngine
import NetOptRouting

/// The probe method `icmp`, which sends an ICMP echo request. A reply gives the planner a round-trip time. A
/// missing reply never counts against the endpoint.
struct ICMPProbe: Probe {
  var furtherSampleMethod: ProbeMethod { .icmp }
  var judgesEndpoint: Bool { false }
  /// False: the machine may reply while the server on it does not run.
  var showsRecovery: Bool { false }

  func take(_ sample: ProbeSample, by prober: Prober) async -> Result<ConnectReport, LegError> {
    guard let loop = prober.loop else {
      return .failure(
        LegError(LegFailure(.other, "echo requests need a client with netopt's own transport")))
    }
    let target = sample.target
    let result = await Echo.roundTrip(to: target.address, within: sample.limit, on: loop)
    if case .success(let time) = result {
      prober.router.record(roundTrip: time, of: target.address, for: target.origin, started: sample.started)
    }
    return result.map { ConnectReport(connect: $0) }
  }
}
