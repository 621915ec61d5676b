import NetOpt
import NetOptCore
import NetOptLocking
import NetOptRouting
import NetOptTestSupport

/// A client that sends its requests to a stub instead of a network, and a host whose addresses are in the
/// client's endpoint list.
struct StubLab {
  /// The name of the host.
  static let host = "api.test"

  /// The addresses of the host in the endpoint list, in the order of the list.
  let addresses: [IPAddress]
  let transport: StubTransport
  let client: NetOptClient

  /// Makes the client.
  ///
  /// - Parameters:
  ///   - outcomes: how the host's addresses behave, in the order of the list. There is one address for each
  ///     outcome.
  ///   - change: changes the configuration of the client before the client is made.
  init(_ outcomes: [StubOutcome], _ change: (inout ClientConfiguration) -> Void = { _ in }) throws {
    addresses = outcomes.indices.map { IPAddress(v4: 0x0a00_0001 + UInt32($0)) }
    transport = StubTransport(Dictionary(uniqueKeysWithValues: zip(addresses, outcomes)))
    var configuration = ClientConfiguration()
    // Without probes there are no measurements, so plans keep the order of the list.
    configuration.probing.atStart = false
    // Of two equal endpoints the one with the higher weight comes first.
    let listed = addresses.enumerated().map { ListedEndpoint($1, weight: 100 - $0) }
    configuration.list = .list(EndpointList(hosts: [Self.host: HostEntry(port: 443, endpoints: listed)]))
    configuration.proxy = .none
    configuration.rankingHistory = .none
    change(&configuration)
    client = try NetOptClient(configuration, transport: transport, resolver: StubResolver())
  }

  /// Makes a request for `/` of the host. `change` changes the request.
  func request(_ method: NetOptRequest.Method = .get, _ change: (inout NetOptRequest) -> Void = { _ in })
    throws
    -> NetOptRequest
  {
    var request = try NetOptRequest(method, "https://\(Self.host)/")
    change(&request)
    return request
  }

  /// The address that received each request, in the order in which the requests were sent; `nil` for a proxy.
  var receivers: [IPAddress?] { transport.received.map(\.address) }
}

/// Records the retries, hedges, responses and failures of a client's calls, in order.
final class AttemptRecorder: CallObserver {
  enum Event: Sendable {
    /// The client will repeat the request: the report of the failed attempt, and the wait before the next
    /// attempt.
    case retry(AttemptReport, Duration)
    /// The client sends a hedge: how long the first attempt has waited for a response.
    case hedge(Duration)
    /// A call got the head of its response: the status.
    case head(Int)
    /// A call failed.
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
