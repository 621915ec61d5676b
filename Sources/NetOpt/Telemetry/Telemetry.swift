public import NetOptCore

extension ClientConfiguration {
  /// Where the client exports traces, and what they say of the service.
  ///
  /// The client continues the trace that the field `traceparent` of a request names (W3C Trace Context), or
  /// begins one. It makes a span for each call, and below it a span for each attempt. Every attempt tells the
  /// server its span in `traceparent`. The client exports the spans over OTLP/HTTP as JSON
  /// (https://opentelemetry.io/docs/specs/otlp/). Its own requests for that are no calls: no observer, metric or
  /// span tells of them.
  public struct Telemetry: Sendable {
    /// The URL of the collector, such as `http://localhost:4318`. The client adds `v1/traces` to the path.
    public var collector: HTTPURL
    /// The name of the service (`service.name`).
    public var serviceName: String
    /// Further attributes of the service, such as `deployment.environment.name`. Default: none.
    public var resource: [String: String] = [:]
    /// The fields that requests to the collector have, such as a key. They are secret: no message shows their
    /// values. Default: none.
    public var headers: HeaderFields = [:]
    /// The share of the traces that are recorded, from 0 to 1, of those that the client begins. A trace that it
    /// continues is recorded if its `traceparent` says so. Default: 1.
    public var sampledShare = 1.0

    /// Creates settings.
    public init(collector: HTTPURL, serviceName: String) {
      self.collector = collector
      self.serviceName = serviceName
    }
  }
}

extension ClientConfiguration.Telemetry {
  /// The URL to which spans are sent.
  var tracesURL: HTTPURL {
    let path = collector.path
    return HTTPURL(origin: collector.origin, target: path + (path.hasSuffix("/") ? "" : "/") + "v1/traces")
  }

  /// Checks the settings.
  ///
  /// - Throws: `invalidConfiguration` with the setting and its rule.
  func check() throws(NetOptError) {
    try Self.shares.check(sampledShare, "telemetry.sampledShare", in: .send)
    if serviceName.isEmpty { throw Self.invalid("telemetry.serviceName is empty") }
    if collector.query != nil {
      throw Self.invalid("telemetry.collector has a query, but the client adds v1/traces to its path")
    }
    for field in headers {
      guard let fault = ClientConfiguration.Defaults.faultInMany(field) else { continue }
      throw ClientConfiguration.invalid(field, in: "telemetry.headers", fault)
    }
  }

  private static func invalid(_ message: String) -> NetOptError {
    NetOptError(.invalidConfiguration, phase: .send, message)
  }
}

// The values of `headers` may be secrets.
extension ClientConfiguration.Telemetry: CustomStringConvertible, CustomReflectable {
  /// The service and the collector.
  public var description: String { "\(serviceName) to \(collector.shown)" }

  /// The output of `dump`, without the values of `headers`.
  public var customMirror: Mirror {
    Mirror(
      self,
      children: [
        "collector": collector.shown, "serviceName": serviceName, "resource": resource,
        "headers": headers.map(\.name), "sampledShare": sampledShare,
      ], displayStyle: .struct)
  }
}
