import Glibc
import NetOptCore
import NetOptRouting
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

/// Tests that no number in a `ClientConfiguration` makes the client trap or hang. `NetOptClient.init` must
/// refuse a number outside its range. With every other number, the client must answer requests. The tests
/// that make clients with extreme numbers do so in child processes, because a trap ends the process.
@Suite struct ExtremeConfigurationTests {
  @Test("the tests cover every number of the configuration")
  func everyNumberIsTried() {
    var configuration = ClientConfiguration()
    configuration.cache = ClientConfiguration.Cache()
    let names = ExtremeSetting.numbers(in: configuration)
    #expect(names.count == Set(names).count)
    #expect(Set(ExtremeSetting.all.map(\.name)) == Set(names))
  }

  @Test("a User-Agent that would add header fields is refused", arguments: ["a\r\nB: c", "a\nB: c", "a\0"])
  func userAgents(_ userAgent: String) throws {
    var configuration = ClientConfiguration()
    configuration.userAgent = userAgent
    let error = #expect(throws: NetOptError.self) { try NetOptClient(configuration) }
    #expect(error?.code == .invalidConfiguration && error?.message.hasPrefix("userAgent is \"a\\") == true)
  }

  @Test("a client with one extreme number is refused by the setting's name, or answers")
  func oneExtremeNumber() async throws {
    // The child names each configuration in the note before it tries the configuration. When the child traps,
    // the last expectation of the test fails and shows the note.
    let note = try LastNote()
    await #expect(processExitsWith: .success) { [path = note.path as String] in
      // SIGALRM ends the child after 300 s, so a child that hangs makes the test fail.
      alarm(300)
      let scene = try Scene(LastNote(path))
      for setting in ExtremeSetting.all {
        for index in 0..<setting.count {
          try await scene.tryOut("\(setting.name), extreme \(index)", naming: [setting.name]) {
            setting.set(&$0, index)
          }
        }
      }
      LastNote(path).write("the end")
    }
    #expect(note.text == "the end")
  }

  @Test("a client with many extreme numbers is refused by a setting's name, or answers")
  func manyExtremeNumbers() async throws {
    let note = try LastNote()
    await #expect(processExitsWith: .success) { [path = note.path as String] in
      alarm(300)
      let scene = try Scene(LastNote(path))
      for seed in 1...200 as ClosedRange<UInt64> {
        var random = SplitMix64(seed: seed)
        // One setting in six is extreme. The others keep their defaults.
        let drawn = ExtremeSetting.all.filter { _ in random.isOne(in: 6) }
        let indices = drawn.map { Int(random.below(UInt64($0.count))) }
        try await scene.tryOut("seed \(seed)", naming: drawn.map(\.name)) {
          for (setting, index) in zip(drawn, indices) { setting.set(&$0, index) }
        }
      }
      LastNote(path).write("the end")
    }
    #expect(note.text == "the end")
  }
}

/// Makes clients with a given configuration and sends requests through them. Has the loopback server for
/// these requests and the directory for the disk caches.
private struct Scene {
  /// The note for the parent process: the configuration that is tried now.
  private let note: LastNote
  private let server: LoopbackServer
  /// All clients with a list keep their disk cache in this directory.
  private let directory: String

  init(_ note: LastNote) throws {
    self.note = note
    directory = try TemporaryDirectory.make("extremes")
    // The body is larger than the buffers of a socket.
    let body = [UInt8](repeating: 0x61, count: 300_000)
    server = try LoopbackServer(.raw { try $0.respond(200, ["Cache-Control": "max-age=60"], body: body) })
  }

  /// Makes two clients with the changed configuration, and sends the same request twice through each. The
  /// first client has no list and reaches the loopback server. The second client has a stub transport and a
  /// list with two endpoints, one of them silent. Each client must answer both requests, or
  /// `NetOptClient.init` must refuse the configuration.
  ///
  /// - Parameters:
  ///   - what: the name of the attempt, for the note and for messages.
  ///   - names: the settings that `change` changes. The error of a refused client must name one of them.
  func tryOut(
    _ what: String, naming names: [String], _ change: (inout ClientConfiguration) -> Void
  ) async throws {
    note.write(what)
    var configuration = ClientConfiguration()
    configuration.proxy = .none
    configuration.rankingHistory = .none
    configuration.cache = ClientConfiguration.Cache()
    change(&configuration)
    var onLoopback = configuration
    onLoopback.list = .none
    await ask("http://\(server.endpoint)/", 300_000, what, names) { () throws(NetOptError) in
      try NetOptClient(onLoopback)
    }
    let addresses = [IPAddress(v4: 0x0a00_0001), IPAddress(v4: 0x0a00_0002)]
    let hosts = ["api.test": HostEntry(endpoints: addresses.map { ListedEndpoint($0) })]
    configuration.list = .list(EndpointList(hosts: hosts))
    configuration.cache?.directory = directory + "/cache"
    let stubbed = configuration
    let body = [UInt8](repeating: 0x62, count: 3000)
    let transport = StubTransport([
      addresses[0]: .respond(fields: ["Cache-Control": "max-age=60"], body: body), addresses[1]: .silent,
    ])
    await ask("https://api.test/", 3000, what, names) { () throws(NetOptError) in
      try NetOptClient(stubbed, transport: transport, resolver: StubResolver())
    }
  }

  /// Makes a client and sends the same request twice through it, as `tryOut` describes.
  ///
  /// - Parameters:
  ///   - url: the beginning of the URL, to which this function appends a path.
  ///   - count: the number of bytes in the body of a correct response.
  private func ask(
    _ url: String, _ count: Int, _ what: String, _ names: [String],
    _ make: () throws(NetOptError) -> NetOptClient
  ) async {
    do throws(NetOptError) {
      let client = try make()
      // Each attempt has its own path. Otherwise the response could come from the disk cache of an earlier
      // client.
      let name = what.utf8.filter { ByteClass.isUnreserved($0) }
      var request = try NetOptRequest(.get, url + String(decoding: name, as: UTF8.self))
      request.options.timeout = .seconds(20)
      for _ in 0..<2 {
        let response = try await client.execute(request)
        let body = try await response.body.collect(upTo: 1 << 20)
        #expect(response.status == 200 && body.count == count, "\(what): \(url)")
      }
      await client.shutdown()
    } catch {
      #expect(error.code == .invalidConfiguration, "\(what): \(url): \(error)")
      #expect(names.contains { error.message.contains($0) }, "\(what): \(url): \(error)")
    }
  }
}
