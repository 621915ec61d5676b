import FoundationEssentials
import Glibc
import NetOptCore
import NetOptRouting
import NetOptTestSupport
import Testing

@testable import NetOpt

/// Tests of the last good copies of lists, of calls that wait for a refresh, and of refreshes that the client
/// must delay or refuse.
extension ListUpdateTests {
  /// The store in which the client of a scene keeps its copies.
  ///
  /// - Parameter keys: the trusted keys of this client.
  func store(_ keys: [MinisignPublicKey] = []) -> ListStore {
    ListStore(
      directory: "\(directory)/state", for: ListReader(trustedKeys: keys, allowPrivateAddresses: true))
  }

  /// Saves a copy and a record, as if an earlier process had fetched the list an hour ago.
  private func keep(_ list: [UInt8]) throws {
    let url = try HTTPURL(Self.url)
    let hour = Date() - 3600
    try store().keep(.init(source: Self.url, tag: "\"x\"", list: list, signature: nil), of: url) { _ in false
    }
    try store().keep(.init(checked: hour, attempted: hour), of: url)
  }

  @Test("a client without keys does not replace the signed copy of a client with keys")
  func copyWithoutKeys() async throws {
    let url = try HTTPURL(Self.url)
    let new = listBytes(serial: 6, refresh: Self.url)
    let signature = try signer.signature(of: new)
    let answer: @Sendable (String, NetOptRequest) -> StubAnswer = { target, _ in
      Self.respond(target == "/list.json" ? new : signature)
    }
    for keys in [true, false] {
      let scene = try scene(keys: keys, refresh: false, answer)
      #expect(try await scene.client.refreshList().serial == 6)
      await scene.client.shutdown()
    }
    #expect(try store([signer.publicKey]).copy(of: url)?.signature == signature)
    #expect(try store().copy(of: url)?.signature == nil)
    let again = try scene(keys: true, refresh: false, answer)
    #expect(again.client.list?.serial == 6)
    #expect(again.client.listWarning == nil)
    await again.client.shutdown()
  }

  @Test("a client uses an expired copy rather than a list file with a lower serial")
  func expiredCopy() async throws {
    try keep(listBytes(serial: 6, refresh: Self.url, expires: "2026-01-01T00:00:00Z"))
    let scene = try scene(refresh: false) { _, _ in .silence }
    #expect(scene.client.list?.serial == 6)
    #expect(scene.client.listWarning?.message.contains("has expired") == true)
    await scene.client.shutdown()
  }

  @Test(
    "a client fetches a lost or damaged copy again at its next start",
    arguments: ["none", "damaged", "marks"])
  func lostCopy(kind: String) async throws {
    let new = listBytes(serial: 6, refresh: Self.url)
    try keep(new)
    let folder = "\(directory)/state"
    let name = try #require(
      try FileManager.default.contentsOfDirectory(atPath: folder).first { $0.hasSuffix(".list") })
    if kind == "none" {
      try #require(unlink("\(folder)/\(name)") == 0)
    } else if kind == "damaged" {
      try replaceFile("\(folder)/\(name)", [1])
    } else {
      // Comparing the first lines as strings would take minutes.
      let lines = (0..<4).map { "\($0)" + String(repeating: "\u{301}\u{316}", count: 100_000) + ": x" }
      try replaceFile(
        "\(folder)/\(name)", Array(("netopt-list 1\n" + lines.joined(separator: "\n") + "\n\n").utf8))
    }
    let scene = try scene { _, _ in Self.respond(new) }
    try await scene.recorder.events.wait(for: "the list") { $0.count == 1 }
    #expect(scene.client.list?.serial == 6)
    await scene.client.shutdown()
    #expect(try store().copy(of: try HTTPURL(Self.url))?.list == new)
  }

  @Test("a refresh that gets 304 stores a copy again that was lost while in use")
  func copyLostInUse() async throws {
    let new = listBytes(serial: 6, refresh: Self.url)
    try keep(new)
    let scene = try scene(refresh: false) { _, _ in Self.respond([], [:], 304) }
    #expect(scene.client.list?.serial == 6)
    let folder = "\(directory)/state"
    for name in try FileManager.default.contentsOfDirectory(atPath: folder) where name.hasSuffix(".list") {
      try #require(unlink("\(folder)/\(name)") == 0)
    }
    _ = try await scene.client.refreshList()
    await scene.client.shutdown()
    #expect(try store().copy(of: try HTTPURL(Self.url))?.list == new)
  }

  @Test("cancelling one refresh does not cancel the other calls that wait for it")
  func cancelledRefresh() async throws {
    let address = try #require(IPAddress("127.0.0.1"))
    let scene = try scene(refresh: false) { _, _ in .silence }
    // Open when the second call begins.
    let isOpen = Latch()
    scene.transport.set(
      .answer { _, _ in
        .response(StubResponse(body: listBytes(serial: 6, refresh: Self.url)))
      }.taking(answer: .milliseconds(300)), for: address)
    let first = Task { try await scene.client.refreshList() }
    try await wait(for: "the request") { scene.requests.count == 1 }
    let second = Task {
      isOpen.open()
      return try await scene.client.refreshList()
    }
    try await isOpen.wait()
    first.cancel()
    await #expect(throws: NetOptError.self) { try await first.value }
    #expect(try await second.value.serial == 6)
    #expect(scene.requests.count == 1)
    await scene.client.shutdown()
  }

  @Test("a failed refresh records the server's Retry-After relative to its Date")
  func refreshRetryAfter() async throws {
    let scene = try scene { _, _ in
      Self.respond(
        [], ["Date": "Sun, 06 Nov 1994 08:00:00 GMT", "Retry-After": "Sun, 06 Nov 1994 10:00:00 GMT"], 503)
    }
    // On the server's clock, the wait ends two hours after the response.
    try await scene.recorder.events.wait(for: "a failure") { $0.count == 1 }
    await scene.client.shutdown()
    let notBefore = try #require(store().record(of: try HTTPURL(Self.url)).notBefore)
    #expect(abs(notBefore.timeIntervalSinceNow - 7200) < 60)
  }

  @Test("a client refuses a list in code whose refresh URL is http")
  func refreshWithoutTLS() throws {
    var configuration = ClientConfiguration()
    configuration.list = .list(
      EndpointList(refresh: .init(url: try HTTPURL("http://api.test/list.json")), hosts: [:]))
    let error = #expect(throws: NetOptError.self) {
      try NetOptClient(configuration, transport: StubTransport(), resolver: StubResolver())
    }
    #expect(error?.code == .invalidConfiguration)
  }
}
