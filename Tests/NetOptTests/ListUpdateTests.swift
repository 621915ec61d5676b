import FoundationEssentials
import NetOptCore
import NetOptLocking
import NetOptRouting
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

/// A client fetches newer lists. A list that fails a check never replaces a valid list, and the error gives
/// the reason.
@Suite struct ListUpdateTests {
  /// The refresh URL of most lists in these tests.
  static let url = "https://api.test/list.json"
  /// The directory with the list file `list.json`, its signature, and the state directory `state`.
  let directory: String
  /// The key that signs the lists, and that clients with `keys: true` trust.
  let signer: ListSigner

  init() throws {
    directory = try TemporaryDirectory.make("updates")
    signer = try ListSigner()
  }

  /// A client, and the scripted server from which it fetches newer lists.
  struct Scene {
    let client: NetOptClient
    /// Records what the client reports about its list.
    let recorder: ListRecorder
    let transport: StubTransport

    /// The requests for the list, without those for its signature.
    var requests: [NetOptRequest] {
      transport.received.map(\.request).filter { $0.url.target == "/list.json" }
    }
  }

  /// Writes the list file and makes a client that uses it.
  ///
  /// - Parameters:
  ///   - list: the bytes of the list file. Default: serial 5, with the refresh URL `url`.
  ///   - keys: whether the client trusts only lists of `signer`. The list file is signed then.
  ///   - refresh: whether the client fetches newer lists by itself. If not, a test calls `refreshList`.
  ///   - probing: whether the client probes the endpoints at its start.
  ///   - answer: the script of the server. It gets the target of a request, such as `/list.json`, and the
  ///     request.
  ///   - change: changes the client's configuration.
  func scene(
    _ list: [UInt8]? = nil, keys: Bool = false, refresh: Bool = true, probing: Bool = false,
    _ answer: @escaping @Sendable (String, NetOptRequest) -> StubAnswer,
    and change: (inout ClientConfiguration) -> Void = { _ in }
  ) throws -> Scene {
    let address = try #require(IPAddress("127.0.0.1"))
    let transport = StubTransport([address: .answer { request, _ in answer(request.url.target, request) }])
    let recorder = ListRecorder()
    var configuration = ClientConfiguration()
    configuration.list = .file("\(directory)/list.json")
    let list = list ?? listBytes(serial: 5, refresh: Self.url)
    try replaceFile("\(directory)/list.json", list)
    if keys {
      configuration.trustedKeys = [signer.publicKey]
      try replaceFile("\(directory)/list.json.minisig", try signer.signature(of: list))
    }
    configuration.allowPrivateAddresses = true
    configuration.proxy = .none
    configuration.probing.atStart = probing
    configuration.listUpdates.refresh = refresh
    configuration.listUpdates.stateDirectory = "\(directory)/state"
    configuration.listObservers = [recorder]
    change(&configuration)
    return Scene(
      client: try NetOptClient(configuration, transport: transport, resolver: StubResolver()),
      recorder: recorder, transport: transport)
  }

  /// A response of the scripted server.
  static func respond(_ body: [UInt8], _ fields: HeaderFields = [:], _ status: Int = 200) -> StubAnswer {
    .response(StubResponse(status, fields: fields, body: body))
  }

  @Test("the first start of a day fetches a newer list, and later starts use the copy")
  func fetchOncePerDay() async throws {
    let new = listBytes(serial: 6, refresh: Self.url)
    let first = try scene { _, _ in Self.respond(new, ["ETag": "\"six\""]) }
    #expect(first.client.list?.serial == 5)
    let events = try await first.recorder.events.wait(for: "a change") { $0.count == 1 }
    #expect(events[0].isChange)
    let status = first.client.listStatus
    #expect(status.source == .fetched(from: try HTTPURL(Self.url)))
    #expect(status.serial == 6)
    #expect(status.lastError == nil)
    #expect(status.lastCheck.map { abs($0.timeIntervalSinceNow) < 60 } == true)
    #expect(
      status.note
        == "using the copy from \(Self.url), serial 6, instead of \(directory)/list.json, serial 5")
    #expect(first.client.list?.serial == 6)
    #expect(first.requests[0].headers["Accept"] == "application/json")
    #expect(first.requests[0].headers["If-None-Match"] == nil)
    await first.client.shutdown()

    // The next start of the day uses the copy and sends no request.
    let second = try scene { _, _ in Self.respond([], [:], 304) }
    #expect(second.client.list?.serial == 6)
    #expect(second.client.listStatus.source == .lastGoodCopy(of: try HTTPURL(Self.url)))
    #expect(second.client.listStatus.lastCheck != nil)
    #expect(second.requests.isEmpty)
    // An explicit refresh sends the ETag of the copy.
    let current = try await second.client.refreshList()
    #expect(current.serial == 6)
    #expect(second.requests.map { $0.headers["If-None-Match"] } == ["\"six\""])
    await second.client.shutdown()
  }

  @Test("a client uses the higher serial of file and copy, but always a file without refresh")
  func fileOrCopy() async throws {
    let first = try scene { _, _ in Self.respond(listBytes(serial: 6, refresh: Self.url)) }
    try await first.recorder.events.wait(for: "a change") { $0.count == 1 }
    await first.client.shutdown()
    let none: @Sendable (String, NetOptRequest) -> StubAnswer = { _, _ in .silence }
    // At equal serials the client uses the file. It always uses a file without `refresh`, which is maintained
    // by hand.
    let hosts = #"{"b.test":{"endpoints":[{"ip":"127.0.0.2"}]}}"#
    for (list, host) in [
      (listBytes(serial: 6, refresh: Self.url, hosts: hosts), "b.test"),
      (listBytes(serial: 7, refresh: Self.url, hosts: hosts), "b.test"),
      (listBytes(serial: 1, hosts: hosts), "b.test"),
      (listBytes(serial: 5, refresh: Self.url, hosts: hosts), "api.test"),
      (listBytes(serial: 1, refresh: "https://api.test/other.json", hosts: hosts), "b.test"),
    ] {
      let scene = try scene(list, refresh: false, none)
      #expect(scene.client.list?.hosts.keys.sorted() == [host])
      await scene.client.shutdown()
    }
  }

  @Test(
    "a client refuses a list that fails a check, and the list in use stays",
    arguments: [
      "changed byte", "other key", "no signature", "signature is a page", "lower serial", "other list",
      "expired", "cut", "cut body", "500", "page", "page with 200", "too large", "private", "empty", "reset",
    ])
  func refusedList(kind: String) async throws {
    let new = listBytes(serial: 6, refresh: Self.url)
    let signature = try signer.signature(of: new)
    let otherSignature = try ListSigner().signature(of: new)
    // What the server sends, depending on `kind`.
    let old = listBytes(serial: 4, refresh: Self.url)
    let otherList = listBytes(serial: 5, refresh: Self.url, hosts: "{}")
    let expired = listBytes(serial: 6, refresh: Self.url, expires: "2026-01-01T00:00:00Z")
    let link = listBytes(serial: 6, refresh: Self.url, hosts: #"{"a.test":{"endpoints":[{"ip":"fe80::1"}]}}"#)
    var signatures: [String: [UInt8]] = [:]
    for (kind, list) in [("lower serial", old), ("other list", otherList), ("expired", expired)] {
      signatures[kind] = try signer.signature(of: list)
    }
    // The correct signature of the list that the server sends.
    let ofKind = signatures[kind] ?? signature
    let page = Array("<!DOCTYPE html><title>Sign in</title>".utf8)
    // Whether the client trusts only signed lists. The other kinds test checks that also apply without keys.
    let isSigned = ![
      "page", "page with 200", "500", "cut", "cut body", "too large", "private", "empty", "reset",
    ]
    .contains(kind)
    let scene = try scene(keys: isSigned) { target, _ in
      if target == "/list.json.minisig" {
        switch kind {
        case "other key": return Self.respond(otherSignature)
        case "no signature": return Self.respond([], [:], 404)
        case "signature is a page": return Self.respond(page)
        default: return Self.respond(ofKind)
        }
      }
      switch kind {
      case "changed byte":
        return Self.respond(
          Array(String(decoding: new, as: UTF8.self).replacing("127.0.0.1", with: "127.0.0.2").utf8))
      case "lower serial": return Self.respond(old)
      case "other list": return Self.respond(otherList)
      case "expired": return Self.respond(expired)
      case "cut": return Self.respond(Array(new.dropLast(20)))
      case "cut body": return .response(StubResponse(body: Array(new.dropLast(20)), end: .cut))
      case "500": return Self.respond(page, [:], 500)
      case "page": return Self.respond(page, ["Content-Type": "text/html; charset=utf-8"])
      case "page with 200": return Self.respond(page)
      case "too large": return Self.respond([UInt8](repeating: 0x20, count: (1 << 20) + 1))
      case "private":
        return Self.respond(
          Array(String(decoding: link, as: UTF8.self).replacing("fe80::1", with: "nonsense").utf8))
      case "empty": return Self.respond([])
      case "reset": return .reset
      default: return Self.respond(new)
      }
    }
    let events = try await scene.recorder.events.wait(for: "a failure") { $0.count == 1 }
    guard case .failed(let error, let status) = events[0] else {
      Issue.record("\(kind): \(events[0])")
      return
    }
    let reasons = [
      "changed byte": "the file or its signature was changed", "other key": "which is not trusted",
      "no signature": "\(Self.url).minisig could not be fetched: the server answered with status 404",
      "signature is a page": "a minisign signature has 4 lines",
      "lower serial": "$.serial: is 4, but the list in use has 5",
      "other list": "$.serial: is 5 as in the list in use",
      "expired": "$.expires: the list expired at 2026-01-01",
      "cut": "not JSON: line 1", "cut body": "could not be fetched",
      "500": "the server answered with status 500",
      "page": "the server answered with a web page (text/html; charset=utf-8)",
      "page with 200": "not JSON: line 1, column 1",
      "too large": "it is larger than 1048576 bytes", "private": "is not an IP address",
      "empty": "the text ends early",
      "reset": "could not be fetched",
    ]
    #expect(error.phase == .list)
    #expect(error.message.contains(try #require(reasons[kind])), "\(error.message)")
    #expect(error.message.contains(Self.url), "\(error.message)")
    #expect(error.message.hasSuffix("the list with serial 5 stays in use"))
    #expect(status.serial == 5)
    #expect(scene.client.list?.serial == 5)
    #expect(scene.client.listWarning?.message == error.message)
    #expect(scene.client.listStatus.lastError?.message == error.message)
    await scene.client.shutdown()
    // The refused list leaves no copy for the next start, and the next start does not fetch again at once.
    let next = try self.scene(keys: isSigned) { _, _ in Self.respond(new) }
    #expect(next.client.list?.serial == 5)
    #expect(next.client.listStatus.source == .file("\(directory)/list.json"))
    #expect(next.requests.isEmpty)
    await next.client.shutdown()
  }

  @Test("a client adopts a signed list, and verifies its copy again when it loads the copy")
  func signedList() async throws {
    let new = listBytes(serial: 6, refresh: Self.url)
    for algorithm in [MinisignSignature.Algorithm.legacy, .prehashed] {
      let signature = try signer.signature(of: new, algorithm)
      let scene = try scene(keys: true) { target, _ in
        Self.respond(target == "/list.json.minisig" ? signature : new)
      }
      _ = try await scene.client.refreshList()
      #expect(scene.client.list?.serial == 6)
      #expect(scene.client.listStatus.signedBy == signer.publicKey.id)
      await scene.client.shutdown()
    }
    // The client verifies the copy again when it loads the copy. It ignores a copy that is signed with a key
    // that it does not trust.
    var configuration = ClientConfiguration()
    configuration.list = .file("\(directory)/list.json")
    let other = try ListSigner()
    try replaceFile(
      "\(directory)/list.json.minisig", try other.signature(of: listBytes(serial: 5, refresh: Self.url)))
    configuration.trustedKeys = [other.publicKey]
    try store([other.publicKey]).keep(
      .init(source: Self.url, tag: nil, list: new, signature: try signer.signature(of: new)),
      of: try HTTPURL(Self.url)
    ) { _ in false }
    configuration.allowPrivateAddresses = true
    configuration.listUpdates.refresh = false
    configuration.listUpdates.stateDirectory = "\(directory)/state"
    let client = try NetOptClient(configuration, transport: StubTransport(), resolver: StubResolver())
    #expect(client.list?.serial == 5)
    #expect(client.listWarning?.code == .invalidSignature)
    #expect(client.listWarning?.message.contains("the last good copy of \(Self.url)") == true)
    await client.shutdown()
  }

  @Test("a client with trusted keys refuses an unsigned list file and accepts the built-in list")
  func unsignedFile() throws {
    try replaceFile("\(directory)/list.json", listBytes(serial: 5))
    var configuration = ClientConfiguration()
    configuration.list = .file("\(directory)/list.json")
    configuration.allowPrivateAddresses = true
    configuration.trustedKeys = [signer.publicKey]
    let error = #expect(throws: NetOptError.self) {
      try NetOptClient(configuration, transport: StubTransport(), resolver: StubResolver())
    }
    #expect(error?.code == .invalidSignature)
    #expect(error?.message.contains("there is no \(directory)/list.json.minisig") == true)
    // A list that is compiled in or made in code is part of the program. It needs no signature.
    configuration.list = .builtIn
    #expect(throws: Never.self) {
      _ = try NetOptClient(configuration, transport: StubTransport(), resolver: StubResolver())
    }
  }

  @Test("a response stays readable across a list refresh, and the next call uses the new list")
  func callsDuringRefresh() async throws {
    let hosts =
      #"{"api.test":{"endpoints":[{"ip":"127.0.0.1"}]},"b.test":{"endpoints":[{"ip":"127.0.0.1"}]}}"#
    let new = listBytes(serial: 6, refresh: Self.url, hosts: hosts)
    let scene = try scene(refresh: false) { target, _ in
      target == "/list.json" ? Self.respond(new) : Self.respond(Array("hello".utf8))
    }
    // Only the new list has b.test. Before the refresh, requests to this host fail, because DNS does not know
    // it.
    let request = try NetOptRequest(.get, "https://b.test/")
    let before = try await scene.client.execute(try NetOptRequest(.get, "https://api.test/"))
    await #expect(throws: NetOptError.self) { try await scene.client.execute(request) }
    _ = try await scene.client.refreshList()
    #expect(try await before.body.collect(upTo: 10) == Array("hello".utf8))
    #expect(try await scene.client.execute(request).route.source == .list)
    await scene.client.shutdown()
  }

  @Test("a client probes the endpoints that a refreshed list adds")
  func newEndpointsAreProbed() async throws {
    let both = #"{"endpoints":[{"ip":"127.0.0.1"},{"ip":"127.0.0.2"}]}"#
    let hosts = #"{"api.test":\#(both),"b.test":{"endpoints":[{"ip":"127.0.0.3"}]}}"#
    let scene = try scene(refresh: false, probing: true) { _, _ in
      Self.respond(listBytes(serial: 6, refresh: Self.url, hosts: hosts))
    }
    #expect(!scene.transport.opened.map(\.description).contains("127.0.0.2"))
    _ = try await scene.client.refreshList()
    try await wait(for: "the probes") {
      Set(scene.transport.opened.map(\.description)).isSuperset(of: ["127.0.0.2", "127.0.0.3"])
    }
    await scene.client.shutdown()
  }

  @Test("a fetched list may name another refresh URL, and a list without one ends refreshes")
  func movedRefreshURL() async throws {
    let moved = "https://api.test/moved.json"
    let scene = try scene(refresh: false) { target, _ in
      Self.respond(
        target == "/list.json" ? listBytes(serial: 6, refresh: moved) : listBytes(serial: 7),
        ["ETag": "\"x\""])
    }
    #expect(try await scene.client.refreshList().source == .fetched(from: try HTTPURL(Self.url)))
    #expect(try await scene.client.refreshList().source == .fetched(from: try HTTPURL(moved)))
    // The client does not send the ETag of one URL to another URL.
    #expect(scene.transport.received.allSatisfy { $0.request.headers["If-None-Match"] == nil })
    await scene.client.shutdown()
    let next = try self.scene(refresh: false) { _, _ in .silence }
    #expect(next.client.list?.serial == 7)
    let error = await #expect(throws: NetOptError.self) { try await next.client.refreshList() }
    #expect(error?.code == .invalidConfiguration)
    await next.client.shutdown()
  }

  @Test("concurrent refreshes share one request")
  func concurrentRefreshes() async throws {
    let address = try #require(IPAddress("127.0.0.1"))
    let scene = try scene(refresh: false) { _, _ in Self.respond(listBytes(serial: 6, refresh: Self.url)) }
    scene.transport.set(
      .answer { _, _ in Self.respond(listBytes(serial: 6, refresh: Self.url)) }.taking(
        answer: .milliseconds(50)),
      for: address)
    await withTaskGroup(of: Int64?.self) { group in
      for _ in 0..<8 { group.addTask { try? await scene.client.refreshList().serial } }
      for await serial in group { #expect(serial == 6) }
    }
    #expect(scene.requests.count == 1)
    await scene.client.shutdown()
  }

  @Test("a client uses a fetched list that it cannot store, and the refresh throws unwritableFile")
  func unwritableState() async throws {
    try replaceFile("\(directory)/state", Array("a file, no directory".utf8))
    let scene = try scene(refresh: false) { _, _ in Self.respond(listBytes(serial: 6, refresh: Self.url)) }
    let error = await #expect(throws: NetOptError.self) { try await scene.client.refreshList() }
    #expect(error?.code == .unwritableFile)
    #expect(error?.message.contains("is in use, but netopt could not save it for the next start") == true)
    #expect(scene.client.list?.serial == 6)
    await scene.client.shutdown()
  }

  @Test("a shutdown during a list refresh reports no error")
  func shutdownDuringRefresh() async throws {
    let scene = try scene { _, _ in .silence }
    try await wait(for: "the request") { scene.requests.count == 1 }
    await scene.client.shutdown()
    #expect(scene.client.listStatus.lastError == nil)
    #expect(scene.recorder.events.events.isEmpty)
    let record = store().record(of: try HTTPURL(Self.url))
    // Each attempt counts as a failure until it succeeds. So a client that is always shut down before the
    // response arrives fetches less and less often.
    #expect(record.failures == 1)
    #expect(record.checked == nil)
    #expect(record.attempted != nil)
  }

  /// Uses nginx with HTTP/2 and TLS, and minisign's own key and signature.
  @Test("a client refreshes a list that minisign signed from nginx over HTTP/2")
  func nginxAndMinisign() async throws {
    let lab = try await Lab([.works])
    defer { lab.stop() }
    let url = "https://\(Lab.host):\(lab.port)/list.json"
    let hosts =
      #"{"\#(Lab.host)":{"port":\#(lab.port),"endpoints":[{"ip":"\#(lab.addresses[0])"}]}}"#
    try await MinisignProgram.makeKey(in: directory)
    let key = try MinisignPublicKey(file: "\(directory)/list.pub")
    /// Issues a list: signs the list with minisign, and stores list and signature where the server serves
    /// them. The first issue also becomes the client's list file.
    func issue(_ serial: Int) async throws {
      // Each issue has another length, so that nginx gives it another ETag. nginx makes ETags from the length
      // and the modification time in seconds.
      let bytes =
        listBytes(serial: serial, refresh: url, hosts: hosts) + [UInt8](repeating: 0x20, count: serial)
      try replaceFile("\(directory)/issue", bytes)
      let signed = try await MinisignProgram.run(["-S", "-s", "list.key", "-m", "issue"], in: directory)
      try #require(signed.isFine, "\(signed.output)")
      let signature = try FileBytes.read("\(directory)/issue.minisig", upTo: 4096, as: "it", in: .list)
      if serial == 1 {
        try replaceFile("\(directory)/list.json", bytes)
        try replaceFile("\(directory)/list.json.minisig", signature)
      }
      try lab.origin.serve(bytes, at: "list.json")
      try lab.origin.serve(signature, at: "list.json.minisig")
    }
    try await issue(1)
    try await issue(2)
    let recorder = ListRecorder()
    let client = try await lab.client {
      $0.list = .file("\(directory)/list.json")
      $0.allowPrivateAddresses = true
      $0.trustedKeys = [key]
      $0.listUpdates.stateDirectory = "\(directory)/state"
      $0.listObservers = [recorder]
    }
    try await recorder.events.wait(for: "the second issue") { $0.last?.status.serial == 2 }
    #expect(client.listStatus.signedBy == key.id)
    #expect(try await client.execute(try lab.request()).route.source == .list)
    // The list has not changed. So the client sends only one request, and the response is a 304 without a
    // body.
    _ = try await client.refreshList()
    let log = try await lab.origin.waitForLog(3) { $0.target.hasPrefix("/list.json") }
    #expect(log.map(\.status) == [200, 200, 304])
    #expect(log.allSatisfy { $0.version == "HTTP/2.0" })
    try await issue(3)
    // The signature on the server does not belong to the list, as after the first step of a careless upload.
    try lab.origin.serve(try signer.signature(of: [1]), at: "list.json.minisig")
    let error = await #expect(throws: NetOptError.self) { try await client.refreshList() }
    #expect(error?.code == .invalidSignature)
    #expect(client.list?.serial == 2)
    try await issue(4)
    #expect(try await client.refreshList().serial == 4)
    #expect(client.listWarning == nil)
    await client.shutdown()
  }

  /// A client that sends only its own list requests is not in use: it sends no probes and saves no ranking.
  @Test("a client that only refreshes its list saves no ranking")
  func rankingWithoutUse() async throws {
    let rankings = "\(directory)/state/rankings"
    for isUsed in [false, true] {
      let scene = try scene(refresh: false, probing: true) { _, _ in
        Self.respond(listBytes(serial: 6, refresh: Self.url))
      } and: { configuration in
        configuration.rankingHistory = .directory("\(directory)/state")
      }
      try await scene.client.refreshList()
      #expect(scene.requests.count == 1)
      if isUsed { _ = try await scene.client.execute(try NetOptRequest(.get, "https://api.test/")) }
      await scene.client.shutdown()
      #expect(FileManager.default.fileExists(atPath: rankings) == isUsed)
    }
  }
}
