import FoundationEssentials
import Glibc
import NetOpt
import NetOptCore
import NetOptRouting
import NetOptTestSupport
import TestTools
import Testing

/// Tests of certificate files that change, and of what connections and caches share under different settings.
@Suite struct TLSChangeTests {
  /// A server that asks for client certificates, and the files of one test.
  private struct Scene {
    let files: TLSFixture
    let servers: TLSServers
    var port: UInt16 { servers.ports[0] }

    init(_ certificate: String = "server") async throws {
      files = try await TLSFixture()
      servers = try await TLSServers([files.server(certificate, asks: "ca", "\"required\":false")])
    }

    /// Makes a client that knows the server as api.test.
    func client(_ change: (inout ClientConfiguration) -> Void) throws -> NetOptClient {
      let entry = HostEntry(port: port, endpoints: [ListedEndpoint(.loopback)])
      var configuration = files.configuration(["api.test": entry])
      change(&configuration)
      return try NetOptClient(configuration)
    }

    /// Returns the name by which the server knows the client.
    func name(_ client: NetOptClient) async throws -> String {
      let response = try await client.execute(NetOptRequest(.get, "https://api.test:\(port)/"))
      return String(decoding: try await response.body.collect(upTo: 100), as: UTF8.self)
    }

    /// Returns the name by which the server knows a new client with a disk cache, or by which it knew an
    /// earlier client when the response is from the cache.
    func name(
      cachingIn directory: String, _ change: (inout ClientConfiguration) -> Void
    ) async throws -> String {
      let client = try client {
        var cache = ClientConfiguration.Cache()
        cache.directory = directory
        cache.options = .api(CacheOptions.Declaration(timeToLive: .seconds(100)))
        $0.cache = cache
        change(&$0)
      }
      do {
        let name = try await name(client)
        await client.shutdown()
        return name
      } catch {
        await client.shutdown()
        throw error
      }
    }

    /// Replaces a file by another one, as a deployment does.
    func replace(_ name: String, by other: String) throws {
      try Data(files.bytes(other)).write(to: URL(fileURLWithPath: files.path("new")))
      #expect(rename(files.path("new"), files.path(name)) == 0)
    }
  }

  /// Replaces the files of a client certificate while requests run. Each response must be for one of the two
  /// identities, and after the change no request uses a connection with the old one.
  @Test("a client uses a new client certificate when its files change, and reports files that do not fit")
  func rotation() async throws {
    let scene = try await Scene()
    defer { scene.servers.stop() }
    let warnings = EventRecorder<NetOptError>()
    let client = try scene.client {
      $0.tls.clientCertificate = ClientCertificate(
        certificateFile: scene.files.path("alice.pem"), keyFile: scene.files.path("alice.key"))
      // A client also warns of a libcurl with faults.
      $0.warningHandler = { if $0.code != .unsupported { warnings.record($0) } }
    }
    #expect(try await scene.name(client) == "alice")
    // Only the certificate is new: it does not fit the key, so the client keeps what it had.
    try scene.replace("alice.pem", by: "bob.pem")
    try await warnings.wait(for: "the warning") { $0.count >= 1 }
    let warning = try #require(warnings.events.first)
    #expect(
      warning.code == .invalidConfiguration && warning.message.contains("does not belong to the private key"))
    #expect(try await scene.name(client) == "alice")
    try scene.replace("alice.key", by: "bob.key")
    try await wait(for: "the new certificate") { try await scene.name(client) == "bob" }
    for _ in 0..<20 { #expect(try await scene.name(client) == "bob") }
    await client.shutdown()
  }

  @Test("a client accepts a new authority soon after its file changes, and no longer accepts the old one")
  func authorities() async throws {
    let scene = try await Scene()
    defer { scene.servers.stop() }
    let client = try scene.client { _ in }
    #expect(try await scene.name(client) == "nobody")
    try scene.replace("ca.pem", by: "other-ca.pem")
    try await wait(for: "the failure") {
      do throws(NetOptError) {
        _ = try await client.execute(NetOptRequest(.get, "https://api.test:\(scene.port)/"))
        return false
      } catch {
        #expect(error.code == .certificateUntrusted)
        return true
      }
    }
    // No later request gets through.
    for _ in 0..<5 { await #expect(throws: NetOptError.self) { try await scene.name(client) } }
    await client.shutdown()
  }

  /// libcurl 7.88 keeps the authorities of the first connection for all connections of a client.
  @Test("a host's own authorities hold for it alone, whichever host comes first", arguments: [true, false])
  func authoritiesOfHosts(otherFirst: Bool) async throws {
    let files = try await TLSFixture.shared.value
    let servers = try await TLSServers([files.server("server"), files.server("wrong-name")])
    defer { servers.stop() }
    var configuration = files.configuration([
      "api.test": HostEntry(port: servers.ports[0], endpoints: [ListedEndpoint(.loopback)]),
      "portal.test": HostEntry(port: servers.ports[1], endpoints: [ListedEndpoint(.loopback)]),
    ])
    configuration.probing.atStart = false
    configuration.tls.hosts["portal.test"] = ClientConfiguration.TLS()
    configuration.tls.hosts["portal.test"]?.caFile = files.path("other-ca.pem")
    let client = try NetOptClient(configuration)
    for isOther in [otherFirst, !otherFirst, otherFirst] {
      let url = isOther ? "https://portal.test:\(servers.ports[1])/" : "https://api.test:\(servers.ports[0])/"
      let request = try NetOptRequest(.get, url)
      if isOther {
        let error = await #expect(throws: NetOptError.self) { try await client.execute(request) }
        #expect(error?.code != .sendFailed)
      } else {
        #expect(try await client.execute(request).status == 200)
      }
    }
    await client.shutdown()
  }

  @Test("clients with different client certificates that share a cache see none of each other's responses")
  func partitions() async throws {
    let scene = try await Scene()
    defer { scene.servers.stop() }
    let directory = try TemporaryDirectory.make("mtls-cache")
    func ask(_ name: String?) async throws -> String {
      try await scene.name(cachingIn: directory) {
        if let name {
          $0.tls.clientCertificate = ClientCertificate(
            certificateFile: scene.files.path(name + ".pem"), keyFile: scene.files.path(name + ".key"))
        }
      }
    }
    for name in ["alice", "bob", nil, "alice", nil, "bob"] {
      #expect(try await ask(name) == name ?? "nobody")
    }
  }

  @Test("a client does not get a stored response from a server whose key its list does not pin")
  func pinsOfLists() async throws {
    let scene = try await Scene()
    defer { scene.servers.stop() }
    let directory = try TemporaryDirectory.make("pinned-cache")
    let right = try #require(scene.files.pins["server"])
    let wrong = try #require(scene.files.pins["next"])
    func ask(_ pins: [String]) async throws -> String {
      try await scene.name(cachingIn: directory) {
        let entry = HostEntry(
          port: scene.port, pins: pins.compactMap { PublicKeyPin($0) }, endpoints: [ListedEndpoint(.loopback)]
        )
        $0.list = .list(EndpointList(hosts: ["api.test": entry]))
      }
    }
    #expect(try await ask([]) == "nobody")
    #expect(try await ask([right]) == "nobody")
    let error = await #expect(throws: NetOptError.self) { try await ask([wrong]) }
    #expect(error?.code == .certificatePin)
  }

  @Test("the key log has the secrets of each connection, and only its owner can read it")
  func keyLog() async throws {
    let scene = try await Scene()
    defer { scene.servers.stop() }
    let log = scene.files.path("keys.log")
    let client = try scene.client { $0.tls.keyLog = log }
    _ = try await scene.name(client)
    await client.shutdown()
    let text = TextFile.read(log)
    for label in ["CLIENT_HANDSHAKE_TRAFFIC_SECRET ", "SERVER_TRAFFIC_SECRET_0 "] {
      #expect(text.contains(label), "\(text)")
    }
    var status = stat()
    #expect(stat(log, &status) == 0 && status.st_mode & 0o777 == 0o600)
  }

  @Test("pins of a new list hold for requests that come after it, also on connections that are open")
  func newPins() async throws {
    let scene = try await Scene()
    defer { scene.servers.stop() }
    let wrong = try #require(scene.files.pins["next"])
    let right = try #require(scene.files.pins["server"])
    let path = scene.files.path("list.json")
    func write(_ serial: Int, _ pins: String) throws {
      let text = """
        {"schema":1,"serial":\(serial),"hosts":{"api.test":{"port":\(scene.port),\(pins)"endpoints":[{"ip":"127.0.0.1"}]}}}
        """
      try Data(text.utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
    }
    try write(1, "")
    let client = try scene.client {
      $0.list = .file(path)
      $0.allowPrivateAddresses = true
    }
    #expect(try await scene.name(client) == "nobody")
    try write(2, "\"pins\":[\"\(wrong)\"],")
    try await wait(for: "the list with the wrong pin") { client.listStatus.serial == 2 }
    let error = await #expect(throws: NetOptError.self) { try await scene.name(client) }
    #expect(error?.code == .certificatePin)
    try write(3, "\"pins\":[\"\(wrong)\",\"\(right)\"],")
    try await wait(for: "the list with the right pin") { client.listStatus.serial == 3 }
    try await wait(for: "the endpoint") { (try? await scene.name(client)) == "nobody" }
    await client.shutdown()
  }
}
