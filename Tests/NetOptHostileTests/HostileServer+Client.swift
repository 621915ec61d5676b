import NetOpt
import NetOptCore
import NetOptTestSupport
import TestTools

extension HostileServer {
  /// The settings of a client that trusts the server's certificates, without an endpoint list, a proxy, or a
  /// saved ranking.
  var clientConfiguration: ClientConfiguration {
    var configuration = ClientConfiguration()
    configuration.list = .none
    configuration.proxy = .none
    configuration.rankingHistory = .none
    configuration.tls.caFile = authorityFile
    return configuration
  }

  /// A request to this server's port for HTTPS.
  ///
  /// - Parameters:
  ///   - host: the host name, which selects the scenario.
  ///   - target: the path and the query of the URL.
  ///   - scheme: the scheme of the URL. The port also serves plain HTTP.
  func request(
    _ method: NetOptRequest.Method, _ host: String, _ target: String, scheme: String = "https",
    within timeout: Duration
  ) throws(NetOptError) -> NetOptRequest {
    var request = try NetOptRequest(method, "\(scheme)://\(host):\(secure.port)\(target)")
    request.options.routing = .pinned(secure.address)
    request.options.timeout = timeout
    return request
  }

  /// A request over HTTP/2 to this server, with a single attempt. `host` and `target` are as in `request`.
  func http2Request(
    _ method: NetOptRequest.Method, _ host: String, _ target: String, within timeout: Duration
  ) throws(NetOptError) -> NetOptRequest {
    var request = try request(method, host, target, within: timeout)
    request.options.version = .http2
    request.options.maxAttempts = 1
    return request
  }
}
