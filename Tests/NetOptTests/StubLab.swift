import NetOpt
import NetOptCore
import NetOptLocking
import NetOptRouting
import NetOptTestSupport

/// A client on a transport without a network, and a host with listed addresses.
struct StubLab {
  static let host = "api.test"

  let addresses: [IPAddress]
  let transport: StubTransport
  let client: NetOptClient

  /// Makes the client.
  ///
  /// - Parameter outcomes: how the listed addresses behave, in the list's order.
  init(_ outcomes: [StubOutcome], _ change: (inout ClientConfiguration) -> Void = { _ in }) throws {
    addresses = outcomes.indices.map { IPAddress(v4: 0x0a00_0001 + UInt32($0)) }
    transport = StubTransport(Dictionary(uniqueKeysWithValues: zip(addresses, outcomes)))
    var configuration = ClientConfiguration()
    // Without probes, so that the list's order is the order of plans.
    configuration.probing.atStart = false
    // Of two equal endpoints the one with the higher weight comes first.
    let listed = addresses.enumerated().map { ListedEndpoint($1, weight: 100 - $0) }
    configuration.list = .list(EndpointList(hosts: [Self.host: HostEntry(port: 443, endpoints: listed)]))
    configuration.proxy = .none
    configuration.rankingHistory = .none
    change(&configuration)
    client = try NetOptClient(configuration, transport: transport, resolver: StubResolver())
  }

  func request(_ method: NetOptRequest.Method = .get, _ change: (inout NetOptRequest) -> Void = { _ in })
    throws
    -> NetOptRequest
  {
    var request = try NetOptRequest(method, "https://\(Self.host)/")
    change(&request)
    return request
  }

  /// The addresses that received requests, in that order.
  var receivers: [IPAddress?] { transport.received.map(\.address) }
}

/// Records the events of calls.
final class AttemptRecorder: CallObserver {
  enum Event: Sendable {
    case retry(AttemptReport, Duration)
    case hedge(Duration)
    case head(Int)
    case failed(NetOptError)
  }

  let events = EventRecorder<Event>()

  func callWillRetry(_ id: UInt64, _ attempt: AttemptReport, after delay: Duration) {
    events.record(.retry(attempt, delay))
  }
  func callWillHedge(_ id: UInt64, after delay: Duration) { events.record(.hedge(delay)) }
  func callDidReceiveHead(_ id: UInt64, _ response: NetOptResponse) { events.record(.head(response.status)) }
  func callDidFail(_ id: UInt64, _ error: NetOptError) { events.record(.failed(error)) }
}
