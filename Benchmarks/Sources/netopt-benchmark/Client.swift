import NetOpt
import Synchronization

/// Reads every event: part of what is measured.
struct Reader: CallObserver {
  func callDidReceiveHead(_ id: UInt64, _ response: NetOptResponse) {
    precondition(response.status > 0 && !response.route.legs.isEmpty)
  }

  func callDidFinish(_ id: UInt64, _ timings: Timings) { precondition(timings.total > .zero) }
}

/// Reads the record of every call.
struct RecordReader: CallRecordObserver {
  func callDidEnd(_ call: CallRecord) {
    precondition(call.duration > .zero && call.response?.status == 200 && call.error == nil)
  }
}

/// Adds a field to each request that differs from request to request, as a trace does: what that costs libcurl is
/// a part of what a trace costs.
final class ChangingField: Interceptor {
  private let count = Atomic<UInt64>(0)

  func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError) -> NetOptResponse
  {
    var request = request
    let number = count.add(1, ordering: .relaxed).newValue
    request.headers["traceparent"] =
      "00-0af7651916cd43dd8448eb211c80319c-\(1_000_000_000_000_000 + number)-00"
    return try await next.proceed(request)
  }
}

/// What looks at the calls of a measurement, in addition to a reader of events and to the metrics.
enum Observation: String {
  case events
  case records
  /// A field that differs from request to request.
  case field
  /// Traces of which none is exported. Only the server gets them.
  case unsampled

  init(_ options: Options) throws {
    let name = options.text("--observe") ?? Self.events.rawValue
    guard let known = Self(rawValue: name) else {
      throw UsageError("--observe wants events, records, field or unsampled")
    }
    self = known
  }
}

extension ClientConfiguration {
  /// Makes clients of the configuration observe their calls.
  mutating func observe(_ observation: Observation) throws {
    switch observation {
    case .events: break
    case .records: observers.append(RecordReader())
    case .field: interceptors.append(ChangingField())
    case .unsampled:
      var telemetry = Telemetry(collector: try HTTPURL("http://127.0.0.1:1"), serviceName: "netopt-benchmark")
      telemetry.sampledShare = 0
      self.telemetry = telemetry
    }
  }

  /// The configuration that all measurements share.
  static func measured(_ options: Options) throws -> ClientConfiguration {
    var configuration = ClientConfiguration()
    // The floor sends none.
    configuration.userAgent = ""
    configuration.list = .none
    configuration.rankingHistory = .none
    configuration.allowPrivateAddresses = true
    configuration.proxy = .none
    configuration.tls.caFile = options.text("--cacert")
    configuration.observers = [Reader()]
    configuration.probing.atStart = try options.choice("--probes", true)
    if let file = options.text("--list") { configuration.list = .file(file) }
    if let text = options.text("--connect-to") { configuration.list = .list(try list(connectingTo: text)) }
    return configuration
  }

  /// A list of one endpoint, from libcurl's HOST:PORT:IP:PORT.
  private static func list(connectingTo text: String) throws -> EndpointList {
    let parts = text.split(separator: ":", maxSplits: 2)
    guard parts.count == 3, let port = UInt16(parts[1]), parts[2].hasSuffix(":\(port)"),
      let address = IPAddress(parts[2].dropLast(":\(port)".count).filter { $0 != "[" && $0 != "]" })
    else { throw UsageError("--connect-to wants HOST:PORT:IP:PORT, with one port") }
    let entry = HostEntry(port: port, endpoints: [ListedEndpoint(address)])
    return EndpointList(hosts: [String(parts[0]): entry])
  }
}
