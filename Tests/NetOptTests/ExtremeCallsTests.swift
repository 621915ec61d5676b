import FoundationEssentials
import Glibc
import NetOptCore
import NetOptRouting
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOpt

/// Extreme values that a caller may pass: request options and body lengths on a real connection, lists made
/// in code, texts in a configuration, long field values, and clocks. netopt must neither trap nor hang. Most
/// tests use a child process, because a trap would end the process of all tests. The child writes down what
/// it does next (`LastNote`).
@Suite struct ExtremeCallsTests {
  /// Runs an operation, and returns its value or its error.
  private static func result<Value>(
    _ work: () async throws(NetOptError) -> Value
  ) async -> Result<Value, NetOptError> {
    do throws(NetOptError) { return .success(try await work()) } catch { return .failure(error) }
  }

  @Test("extreme options or body lengths on a real connection end in a response or an error")
  func extremeOptionsOnLoopback() async throws {
    let note = try LastNote()
    await #expect(processExitsWith: .success) { [path = note.path as String] in
      // SIGALRM ends a process that hangs.
      alarm(300)
      let note = LastNote(path)
      let server = try LoopbackServer(
        .raw { exchange in
          _ = try exchange.readBody()
          try exchange.respond(200, ["X": "1"], text: "hello")
        })
      var configuration = ClientConfiguration()
      configuration.list = .none
      configuration.proxy = .none
      configuration.rankingHistory = .none
      let client = try NetOptClient(configuration)
      for seed in 1...300 as ClosedRange<UInt64> {
        var random = SplitMix64(seed: seed)
        var request = try NetOptRequest(.put, "http://\(server.endpoint)/")
        // If the request states a longer body than the stream has, the server waits for the rest. The
        // deadline ends this wait.
        request.options.timeout = .milliseconds(500)
        if random.isOne(in: 2) {
          request.options.connectTimeout = random.element(of: ExtremeNumbers.durations)
        }
        if random.isOne(in: 4) { request.options.timeout = random.element(of: ExtremeNumbers.durations) }
        if random.isOne(in: 8) { request.options.connection = .fresh }
        let length = random.isOne(in: 2) ? nil : Int64(random.element(of: ExtremeNumbers.integers))
        // The stream has 3 bytes, whatever length the request states.
        let chunks = AsyncStream<[UInt8]> {
          $0.yield([1]); $0.yield([2, 3]); $0.finish()
        }
        let isStream = random.isOne(in: 3)
        request.body = isStream ? .stream(length: length, chunks) : .text("abc")
        note.write("seed \(seed): \(request.options), \(isStream ? "\(length ?? 3)" : "")")
        // The request has less time than usual, so a timeout is no fault.
        let isLate = (request.options.timeout ?? .zero) < .milliseconds(500)
        switch await Self.result({ () throws(NetOptError) in
          try await client.execute(request).body.collect(upTo: 5)
        }) {
        case .success(let body):
          #expect(body == Array("hello".utf8) && (!isStream || length ?? 3 == 3), "seed \(seed)")
        case .failure(let error): #expect(isLate || isStream && length ?? 3 != 3, "seed \(seed): \(error)")
        }
      }
      await client.shutdown()
      server.stop()
      note.write("the end")
    }
    #expect(note.text == "the end")
  }

  @Test("a client uses a list made in code with extreme numbers, names and dates")
  func extremeLists() async throws {
    let note = try LastNote()
    await #expect(processExitsWith: .success) { [path = note.path as String] in
      alarm(300)
      let note = LastNote(path)
      let texts = [
        "", ".", "api.test", "API.TEST.", "10.0.0.1", "a..b", "\0", String(repeating: "x", count: 300),
      ]
      let dates = [-Double.infinity, -1e300, 0, 1e300, .infinity, .nan].map {
        Date(timeIntervalSince1970: $0)
      }
      for seed in 1...200 as ClosedRange<UInt64> {
        note.write("seed \(seed)")
        var random = SplitMix64(seed: seed)
        var hosts: [String: HostEntry] = [:]
        for _ in 0..<random.below(4) {
          let endpoints = (0..<random.below(3)).map { _ in
            ListedEndpoint(
              IPAddress(v4: 0x0a00_0001 + UInt32(random.below(2))), region: random.element(of: texts),
              weight: random.element(of: ExtremeNumbers.integers))
          }
          let health = HostEntry.Health(
            path: random.element(of: texts), expect: random.element(of: ExtremeNumbers.integers))
          hosts[random.element(of: texts)] = HostEntry(
            port: random.element(of: [0, 80, 443, .max]), health: health, endpoints: endpoints)
        }
        let url = try HTTPURL("https://api.test/list.json")
        let list = EndpointList(
          serial: Int64(random.element(of: ExtremeNumbers.integers)), issued: random.element(of: dates),
          expires: random.isOne(in: 2) ? nil : random.element(of: dates),
          refresh: .init(url: url, every: random.element(of: ExtremeNumbers.durations)), hosts: hosts)
        var configuration = ClientConfiguration()
        configuration.list = .list(list)
        configuration.proxy = .none
        configuration.probing.method = random.element(of: [nil, .http, .tcp, .icmp])
        configuration.probing.budget = .milliseconds(20)
        configuration.listUpdates.keepCopy = false
        configuration.listObservers = [ListRecorder()]
        let resolver = StubResolver("api.test", [IPAddress(v4: 0x0a00_0001)])
        let transport = StubTransport([IPAddress(v4: 0x0a00_0001): .respond(body: [1])], resolver: resolver)
        let client = try NetOptClient(
          configuration, transport: transport, resolver: resolver)
        var request = NetOptRequest(.get, url)
        request.options.timeout = .seconds(20)
        let response = await Self.result { () throws(NetOptError) in try await client.execute(request) }
        #expect((try? response.get().status) == 200, "seed \(seed): \(response)")
        _ = try? await client.probe()
        _ = await client.warmUp(hosts: texts, within: .milliseconds(20))
        // Makes the texts of the client about the list. The warning contains the date of expiry, which may be
        // infinite. Foundation's own description of a `Date` would trap there.
        _ = "\(client.listStatus.source) \(String(describing: client.listWarning))"
        await client.shutdown()
      }
      note.write("the end")
    }
    #expect(note.text == "the end")
  }

  /// Closures that each set one setting of a configuration to a text.
  private static let texts: [@Sendable (inout ClientConfiguration, String) -> Void] = [
    { $0.list = .file($1) }, { $0.listUpdates.stateDirectory = $1 }, { $0.rankingHistory = .directory($1) },
    { $0.dns.servers = [$1] }, { $0.tls.caFile = $1 }, { $0.proxy = .url($1) }, { $0.userAgent = $1 },
    { $0.cache?.directory = $1 }, { $0.cache?.seedPacks = [$1] }, { $0.cache?.options.partition = $1 },
    { $0.routing.region = $1 }, { $0.routing.isp = $1 },
  ]

  @Test("an empty, long or odd text in a configuration is refused, or the client's request ends")
  func extremeTexts() async throws {
    let note = try LastNote()
    await #expect(processExitsWith: .success) { [path = note.path as String] in
      alarm(300)
      let note = LastNote(path)
      // The client takes some of the texts for relative paths. The working directory is empty, so that they
      // lead to no file except `pipe`.
      chdir(try TemporaryDirectory.make("texts"))
      // No process opens the other end of this pipe, so a client that opened it might wait forever.
      try #require(mkfifo("pipe", 0o600) == 0)
      let server = try LoopbackServer(.raw { try $0.respond(200, [:], text: "hello") })
      let texts = [
        "", " ", ".", "\0", "a\0b", "a\r\nB: c", "\u{202e}", "é",
        String(repeating: "\u{301}\u{316}", count: 20_000), "http://", "http://[", "http://127.0.0.1:0",
        "http://127.0.0.1:99999999999", "socks5h://", "127.0.0.1:0", "[", "[]:", "pipe",
        String(repeating: "x", count: 70_000),
      ]
      for (index, set) in Self.texts.enumerated() {
        for text in texts {
          note.write("text \(index): \(text)")
          var configuration = ClientConfiguration()
          configuration.list = .none
          configuration.proxy = .none
          configuration.rankingHistory = .none
          configuration.cache = ClientConfiguration.Cache()
          set(&configuration, text)
          let changed = configuration
          guard
            case .success(let client) = await Self.result({ () throws(NetOptError) in
              try NetOptClient(changed)
            })
          else { continue }
          var request = try NetOptRequest(.get, "http://\(server.endpoint)/\(index)")
          request.options.timeout = .milliseconds(500)
          _ = await Self.result { () throws(NetOptError) in
            try await client.execute(request).body.collect(upTo: 5)
          }
          await client.shutdown()
        }
      }
      server.stop()
      note.write("the end")
    }
    #expect(note.text == "the end")
  }

  /// Fields that would take seconds to compare and hash.
  @Test(
    "a request whose fields have a long run of combining marks, or exceed the limits, is refused at once",
    arguments: [nil, ClientConfiguration.Cache()] as [ClientConfiguration.Cache?])
  func slowFields(_ cache: ClientConfiguration.Cache?) async throws {
    let server = try LoopbackServer(
      .raw { try $0.respond(200, ["Vary": "Accept, Cookie", "Cache-Control": "max-age=60"], text: "hello") })
    defer { server.stop() }
    var configuration = ClientConfiguration()
    configuration.list = .none
    configuration.proxy = .none
    configuration.cache = cache
    let client = try NetOptClient(configuration)
    let request = try NetOptRequest(.get, "http://\(server.endpoint)/")
    _ = try await client.execute(request)
    for (fields, part) in [
      ([HeaderField("Accept", "a" + String(repeating: "\u{301}\u{316}", count: 50_000))], "Accept"),
      ((0..<300_000).map { HeaderField("Cookie", "c\($0)=1") }, "300000 header fields"),
      ([HeaderField(String(repeating: "n", count: 30_000_000), "")], "30000000 bytes"),
    ] {
      var request = request
      request.headers = HeaderFields(fields)
      let clock = SystemTimeSource()
      let start = clock.now()
      let error = await #expect(throws: NetOptError.self) { try await client.execute(request) }
      #expect(error?.code == .invalidRequest && error?.message.contains(part) == true)
      #expect(error?.message.utf8.count ?? 0 < 1000)
      #expect(clock.now() - start < .seconds(1))
    }
    await client.shutdown()
  }

  @Test("a client whose clock stands at an extreme moment answers requests or reports a timeout")
  func extremeClocks() async throws {
    let note = try LastNote()
    await #expect(processExitsWith: .success) { [path = note.path as String] in
      alarm(300)
      let note = LastNote(path)
      for moment in ExtremeNumbers.moments {
        for limit in ExtremeNumbers.durations + [.seconds(10)] {
          note.write("\(moment), \(limit)")
          let clock = ManualTimeSource(at: moment)
          let address = IPAddress(v4: 0x0a00_0001)
          let transport = StubTransport(
            [address: .respond(fields: ["Cache-Control": "max-age=0"], body: [1])], timeSource: clock)
          var configuration = ClientConfiguration()
          configuration.list = .list(
            EndpointList(hosts: ["api.test": HostEntry(endpoints: [ListedEndpoint(address)])]))
          configuration.proxy = .none
          configuration.cache = ClientConfiguration.Cache()
          let client = try NetOptClient(
            configuration, transport: transport, resolver: StubResolver(), timeSource: clock)
          var request = try NetOptRequest(.get, "https://api.test/")
          request.options.timeout = limit
          request.options.hedges = true
          for _ in 0..<2 {
            let result = await Self.result { () throws(NetOptError) in try await client.execute(request) }
            if case .failure(let error) = result {
              #expect(error.code == .timeout, "\(moment), \(limit): \(error)")
            }
          }
          await client.shutdown()
        }
      }
      note.write("the end")
    }
    #expect(note.text == "the end")
  }
}
