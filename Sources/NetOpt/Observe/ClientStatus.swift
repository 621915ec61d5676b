public import FoundationEssentials
public import NetOptCore
public import NetOptRouting

/// What a client knows about its list and its endpoints at one moment (`NetOptClient.status()`).
public struct ClientStatus: Sendable {
  /// A host of the list.
  public struct Host: Sendable {
    /// The name of the host.
    public let name: String
    /// The port of the host's endpoints.
    public let port: UInt16
    /// Whether requests use the endpoints: the list has not expired, and there is no proxy for the host.
    /// Otherwise requests go over DNS or to the proxy.
    public let usesList: Bool
    /// The host's endpoints in the order of their ranks; endpoints that requests avoid come last.
    public let endpoints: [Endpoint]
  }

  /// An endpoint of a host.
  public struct Endpoint: Sendable {
    /// The IP address.
    public let address: IPAddress
    /// The region of the endpoint, as the list names it; `nil` when the list names none.
    public let region: String?
    /// The provider of the endpoint's network, as the list names it; `nil` when the list names none.
    public let isp: String?
    /// The place of the endpoint in the order of the host's endpoints, from 1. `nil` when requests avoid the
    /// endpoint. With the policies `fastest` and `pinned`, the next request tries the endpoint with rank 1
    /// first.
    public let rank: Int?
    /// The time by which endpoints are ranked, the lowest first: the time until a connection can carry a
    /// request, the time by which responses begin later than usual, and penalties for recent failures. `nil`
    /// before the first measurement.
    public let score: Duration?
    /// The smoothed round-trip time; `nil` before the first measurement.
    public let rtt: Duration?
    /// The state of the endpoint's circuit breaker.
    public let state: CircuitState
    /// Why requests avoid the endpoint; `nil` when they do not.
    public let excluded: ExclusionReason?
    /// Since when the endpoint has been avoided: its circuit breaker opened, or its certificate was wrong, and
    /// it has not worked since. `nil` for an endpoint that works. While an attempt may show that the endpoint
    /// works again, the endpoint has a rank and also a value here.
    public let avoidedSince: Date?
    /// The last failure in the current network, however long ago; `nil` when there was none.
    public let lastFailure: LegFailure?
    /// When `lastFailure` occurred.
    public let lastFailed: Date?
    /// What requests and probes have met with, for the metrics.
    let counts: EndpointCounts
  }

  /// When the status was made.
  public let date: Date
  /// The number of calls that have not returned.
  public let callsUnderWay: Int
  /// The status of the list in use.
  public let list: ListStatus
  /// The problem with the list in use; `nil` when there is none (`NetOptClient.listWarning`).
  public let listWarning: NetOptError?
  /// The hosts of the list, by name.
  public let hosts: [Host]
}

extension ClientStatus.Endpoint {
  /// - Parameter date: converts a moment of the planner.
  init(_ status: EndpointStatus, date: (MonotonicInstant) -> Date) {
    address = status.endpoint.address
    region = status.endpoint.region
    isp = status.endpoint.isp
    rank = status.rank
    score = status.score
    rtt = status.rtt
    state = status.state
    excluded = status.excluded
    avoidedSince = status.avoidedSince.map(date)
    lastFailure = status.lastFailure
    lastFailed = status.lastFailed.map(date)
    counts = status.counts
  }
}

extension NetOptClient {
  /// What the client knows now about its list and its endpoints: their ranking, and which ones requests avoid
  /// and why. Sends nothing. Also after a shutdown.
  public func status() -> ClientStatus {
    let (date, list) = (Date(), list)
    let hosts = (list?.hosts ?? [:]).sorted { $0.key < $1.key }.compactMap { name, entry in
      router.usedOrigin(of: name).map { origin in
        ClientStatus.Host(
          name: name, port: entry.port, usesList: router.isDirect(origin),
          endpoints: router.withPlanner { planner, now in
            planner.status(of: origin, at: now).map { status in
              ClientStatus.Endpoint(status) { date - Double((now - $0).nanoseconds) / 1e9 }
            }
          })
      }
    }
    return ClientStatus(
      date: date, callsUnderWay: calls.count, list: listStatus, listWarning: listWarning, hosts: hosts)
  }
}
