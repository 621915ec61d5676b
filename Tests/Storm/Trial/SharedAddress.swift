import FoundationEssentials
package import NetOpt
package import NetOptCore
import NetOptRouting
import NetOptTestSupport
import TestTools

/// Two listed hosts at one address and port. One of them speaks only HTTP/1.1.
///
/// A client on libcurl before 8.5 sends another request over a busy HTTP/1.1 connection to this address,
/// because the connections of the other host multiplex.
package final class SharedAddress: Sendable {
  /// The host that speaks only HTTP/1.1.
  package static let oldHost = "old.test"
  /// The host that speaks HTTP/2.
  package static let newHost = "new.test"

  package let endpoint: IPEndpoint
  private let servers: [NginxOrigin]
  private let splice: Splice

  /// Starts the servers.
  package init() async throws {
    let addresses = IPAddress.freshLoopback(2)
    var settings = NginxSettings()
    settings.directives = Self.question
    let certificate = try await TestCertificates.certificate(for: [Self.oldHost, Self.newHost])
    let listeners = [NginxOrigin.Listener(addresses[1], .certificate(certificate))]
    let new = try await NginxOrigin.start(listeners, settings: settings)
    settings.http2 = false
    let old = try await NginxOrigin.start(listeners, settings: settings)
    servers = [new, old]
    endpoint = IPEndpoint(addresses[0], port: try FreePort.find(on: [addresses[0]]))
    splice = try Splice([
      Splice.Frontend(endpoint, [Self.newHost: new.endpoints, Self.oldHost: old.endpoints])
    ])
  }

  /// The nginx locations. Each responds with the request's id, method and host: at once, after 300 ms, or
  /// half at once and half after 300 ms.
  private static let question = """
    location = /quick {
      add_header X-Id $http_x_id always;
      echo -n "$http_x_id $request_method $http_host";
    }
    location = /late {
      add_header X-Id $http_x_id always;
      echo_sleep 0.3;
      echo -n "$http_x_id $request_method $http_host";
    }
    location = /halves {
      add_header X-Id $http_x_id always;
      echo -n "$http_x_id $request_method ";
      echo_flush;
      echo_sleep 0.3;
      echo -n "$http_host";
    }
    """

  /// Makes a client with both hosts in its endpoint list and default settings otherwise.
  package func client() async throws -> NetOptClient {
    var configuration = ClientConfiguration()
    let entry = HostEntry(port: endpoint.port, endpoints: [ListedEndpoint(endpoint.address)])
    configuration.list = .list(EndpointList(hosts: [Self.oldHost: entry, Self.newHost: entry]))
    configuration.allowPrivateAddresses = true
    configuration.tls.caFile = try await TestCertificates.authorityFile()
    configuration.dns.servers = ["127.0.0.1:1"]
    configuration.proxy = .none
    configuration.rankingHistory = .none
    return try NetOptClient(configuration)
  }

  /// The number of connections to the address.
  package var connections: Int { splice.figures.connections }

  /// Stops the servers.
  package func stop() {
    splice.stop()
    for server in servers { server.stop() }
  }
}
