import FoundationEssentials
package import NetOpt
package import NetOptCore
import NetOptRouting
import NetOptTestSupport
import TestTools

/// The servers of `SharedAddressTrial`: two hosts at one address and port. One host speaks HTTP/2, the other
/// only HTTP/1.1.
///
/// libcurl before 8.5 notes for an address, not for each connection, whether connections multiplex. After a
/// connection to the HTTP/2 host, it may send a request on an HTTP/1.1 connection to this address that still
/// carries another request. netopt must prevent this (docs/adr/0022).
package final class SharedAddress: Sendable {
  /// The host that speaks only HTTP/1.1.
  package static let oldHost = "old.test"
  /// The host that speaks HTTP/2.
  package static let newHost = "new.test"

  /// The address and port at which a client reaches both hosts.
  package let endpoint: IPEndpoint
  /// The server of `newHost`, then the server of `oldHost`. Both listen on another address than `endpoint`.
  private let servers: [NginxOrigin]
  /// Listens on `endpoint`, and forwards each connection to the server of the host that the TLS handshake
  /// names.
  private let splice: Splice

  /// Starts the servers and the splice.
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

  /// The locations in nginx's configuration. Each location responds with the request's id (the field `X-Id`),
  /// method and host. `/quick` responds at once and `/late` after 300 ms. `/halves` sends the first half of
  /// the body at once and the second half after 300 ms.
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

  /// Makes a client whose list has both hosts at `endpoint`. The client uses no proxy, has no reachable name
  /// server and keeps no ranking. Its other settings are the defaults.
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

  /// The number of connections to `endpoint` so far, closed ones included.
  package var connections: Int { splice.figures.connections }

  /// Stops the splice and the servers.
  package func stop() {
    splice.stop()
    for server in servers { server.stop() }
  }
}
