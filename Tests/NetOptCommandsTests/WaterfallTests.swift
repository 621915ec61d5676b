import NetOptCore
import Testing

@testable import NetOptCommands

/// Tests of the report that `netopt get -v` prints: the route, the candidates, and a chart of the legs on a
/// common time axis.
@Suite struct WaterfallTests {
  private static let url = "https://api.example.com/v1/ping"

  /// Makes a finished exchange over HTTP/2 with a body of 1234 bytes.
  ///
  /// - Parameter change: changes the response before the exchange is made from it.
  private func exchange(
    _ url: String = url, route: RouteReport = Samples.direct, timings: Timings = Samples.timings,
    _ change: (inout NetOptResponse) -> Void = { _ in }
  ) throws -> FinishedExchange {
    var response = NetOptResponse(
      url: try HTTPURL(url), head: ResponseHead(status: 200, version: .http2),
      body: ResponseBody([], timings: timings), route: route,
      remote: route.winner?.address.map { IPEndpoint($0, port: 443) },
      tls: TLSReport(verified: true, version: "TLSv1.3"))
    change(&response)
    return FinishedExchange(.get, response, bodyBytes: 1234)
  }

  /// Makes a route whose plan has only the DNS leg.
  ///
  /// - Parameters:
  ///   - off: why direct mode is off; `nil` if it is on.
  ///   - legs: the legs that were started.
  private func route(
    off: RoutePlan.DirectOff? = .noList, candidates: [RouteReport.Candidate] = [],
    legs: [RouteReport.Leg] = []
  ) -> RouteReport {
    RouteReport(
      plan: RoutePlan(
        origin: Samples.origin, policy: .fastest, directOff: off,
        listedPort: off == .port ? 8443 : nil, candidates: candidates,
        legs: [.init(.dns, source: .dns)]), legs: legs)
  }

  @Test("the waterfall shows the candidates, legs and times of a direct request")
  func drawsADirectRequest() throws {
    #expect(
      Waterfall(try exchange()).text(columns: 80) == """
        netopt get  https://api.example.com/v1/ping                       GET HTTP/2 200

        SERVER   203.0.113.9:443, new connection
        TLS      TLSv1.3, certificate verified
        ROUTE    direct, from the list, policy fastest
        BODY     1234 bytes

         #  CANDIDATE         SCORE
         1  203.0.113.7     20.1 ms
         2  203.0.113.9     24.2 ms
         3  2001:db8::7     unknown
         !  192.0.2.66     excluded  it failed 3 times in a row

         LEG          FROM  OUTCOME  |0                                      |   63.8 ms
         203.0.113.7  list  failed   T                                            1.2 ms
         203.0.113.9  list  won       TTTTTTTTTTTTTSSSSSSSSSSSSS                 42.5 ms
         request                                                RWWWWWWWWWWWWX   63.8 ms
                                     T tcp  S tls  R send  W wait  X transfer

         203.0.113.7: connection refused

        TIME ms    queue     dns     tcp     tls    send    wait  transfer   total
                     1.2     0.0    20.1    21.2     0.1    18.9       2.3    63.8

        """)
  }

  @Test("the metrics of the server are below the durations, without control characters")
  func serverTiming() throws {
    var exchange = try exchange { response in
      response.head = ResponseHead(
        status: 200, version: .http2,
        fields: [
          "Server-Timing": "db;dur=12.34;desc=\"the\u{1b}[31m primary\", cache;desc=hit, total;dur=17",
          "server-timing": "a-name-that-is-too-long-for-its-column;dur=1",
        ])
    }
    let lines = Waterfall(exchange).text(columns: 80).split(separator: "\n").map(String.init)
    #expect(
      Array(lines.suffix(7)) == [
        "TIME ms    queue     dns     tcp     tls    send    wait  transfer   total",
        "             1.2     0.0    20.1    21.2     0.1    18.9       2.3    63.8",
        "  reported by the server (Server-Timing):",
        "    db                                              12.3  the\u{fffd}[31m primary",
        "    cache                                                 hit",
        "    total                                           17.0",
        "    a-name-that-is-too-long-f...                     1.0",
      ])
    #expect(
      exchange.json.description.contains(
        #""server_timing":[{"name":"db","dur_us":12340,"desc":"the\#u{fffd}[31m primary"},"#
          + #"{"name":"cache","dur_us":null,"desc":"hit"},"#))
    exchange.serverTiming = []
    #expect(!Waterfall(exchange).text(columns: 80).contains("Server-Timing"))
  }

  @Test(
    "a response from the cache shows no metrics of the server",
    arguments: [CacheStatus.Outcome.hit, .stale, .revalidated])
  func storedServerTiming(outcome: CacheStatus.Outcome) throws {
    let exchange = try exchange { response in
      response.head = ResponseHead(status: 200, version: .http2, fields: ["Server-Timing": "db;dur=1"])
      response.cacheStatus = CacheStatus(outcome, by: CacheRule("a rule", "a section"))
    }
    #expect(exchange.serverTiming.isEmpty)
  }

  @Test("the waterfall lists the attempts that did not give the response, and no table without any")
  func otherAttempts() throws {
    let exchange = try exchange(route: Samples.fallback, timings: Timings()) { response in
      response.otherAttempts = Samples.attempts
    }
    let text = Waterfall(exchange).text(columns: 100)
    let lines = text.split(separator: "\n").map(String.init)
    let start = try #require(lines.firstIndex { $0.hasPrefix(" #  ATTEMPT") })
    #expect(
      Array(lines[start..<(start + 4)]) == [
        " #  ATTEMPT                FROM          TO",
        " 1  203.0.113.7:443      0.0 ms     12.0 ms  the connection  died",
        " 2  203.0.113.7:443     12.0 ms     30.0 ms  answered 503",
        " 3  none                70.0 ms     80.0 ms  hedge: another attempt was answered first",
      ])
    let error = Waterfall(failed: "https://a/", Samples.fallback, otherAttempts: Samples.attempts)
      .text(columns: 100)
    #expect(error.contains("ATTEMPT"))
    #expect(!Waterfall(failed: "https://a/", Samples.fallback).text(columns: 100).contains("ATTEMPT"))
  }

  @Test func drawsAFallbackToDNS() throws {
    var timings = Timings()
    timings.queue = .milliseconds(500)
    timings.connect = .milliseconds(30)
    timings.tls = .milliseconds(30)
    timings.wait = .milliseconds(40)
    let exchange = try exchange(route: Samples.fallback, timings: timings) { response in
      response.tls?.verified = false
      response.attempts = 2
    }
    #expect(
      Waterfall(exchange).text(columns: 80) == """
        netopt get  https://api.example.com/v1/ping                       GET HTTP/2 200

        SERVER   198.51.100.4:443, new connection, 2 attempts
        TLS      TLSv1.3, certificate NOT VERIFIED (-k)
        ROUTE    DNS; no listed address was ready in time
        BODY     1234 bytes

         #  CANDIDATE         SCORE
         1  203.0.113.7     unknown

         LEG           FROM  OUTCOME    |0                                   |  600.0 ms
         203.0.113.7   list  cancelled  TSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSS     560.0 ms
         198.51.100.4  dns   won                                        TTS     560.0 ms
         request                                                           WWW  600.0 ms
                                        T tcp  S tls  W wait

        TIME ms    queue     dns     tcp     tls    send    wait  transfer   total
                   500.0     0.0    30.0    30.0     0.0    40.0       0.0   600.0

        """)
  }

  @Test func drawsAFailure() {
    #expect(
      Waterfall(failed: Self.url, Samples.lost).text(columns: 80) == """
        netopt get  https://api.example.com/v1/ping                               FAILED

        ROUTE    DNS; no listed address worked for this request

         #  CANDIDATE         SCORE
         1  203.0.113.7      5.0 ms

         LEG          FROM  OUTCOME  |0                                      |  512.0 ms
         203.0.113.7  list  failed   TS                                          12.0 ms
         look-up      dns   failed    DDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDD  512.0 ms
                                     D dns  T tcp  S tls

         203.0.113.7: the certificate is for *.portal.lan, not for api.example.com;
            correct the list
         look-up: no name server answered

        """)
  }

  @Test("the bar of a leg begins with its DNS lookup")
  func dnsLookup() throws {
    var timings = Timings()
    timings.dns = .milliseconds(20)
    timings.connect = .milliseconds(20)
    timings.wait = .milliseconds(20)
    let leg = RouteReport.Leg(
      address: Samples.address("127.0.0.1"), source: .dns, started: .zero, connected: .milliseconds(40),
      ended: .milliseconds(40), outcome: .won)
    let exchange = try exchange("http://a.example/", route: route(legs: [leg]), timings: timings) {
      $0.tls = nil
    }
    #expect(
      Waterfall(exchange).text(columns: 72) == """
        netopt get  http://a.example/                             GET HTTP/2 200

        SERVER   127.0.0.1:443, new connection
        TLS      none, plain HTTP
        ROUTE    DNS; there is no list, or the host is not in it
        BODY     1234 bytes

         LEG        FROM  OUTCOME  |0                                |   60.0 ms
         127.0.0.1  dns   won      DDDDDDDDDDDDTTTTTTTTTTT               40.0 ms
         request                                          WWWWWWWWWWWW   60.0 ms
                                   D dns  T tcp  W wait

        TIME ms    queue     dns     tcp     tls    send    wait  transfer   total
                     0.0    20.0    20.0     0.0     0.0    20.0       0.0    60.0

        """)
  }

  @Test("a leg on a pooled connection has no bar")
  func pooledConnection() throws {
    var timings = Timings()
    timings.wait = .milliseconds(20)
    let leg = RouteReport.Leg(
      address: Samples.address("203.0.113.9"), source: .list, started: .zero, ended: .zero, outcome: .won,
      reused: true)
    let text = Waterfall(
      try exchange(route: route(off: nil, legs: [leg]), timings: timings) { $0.reused = true }
    )
    .text(columns: 80)
    #expect(text.contains("SERVER   203.0.113.9:443, pooled connection\n"))
    #expect(
      text.contains(" 203.0.113.9  list  won, pooled                                           0.0 ms\n"))
  }

  @Test(
    "the ROUTE line states why the request does not use the list",
    arguments: [
      (RoutePlan.DirectOff.proxy, "through the proxy; the list is not used"),
      (.requested, "DNS, as requested; the list is not used"),
      (.port, "DNS; the list has the host for port 8443, not for port 443"),
      (.noList, "DNS; there is no list, or the host is not in it"), (.expired, "DNS; the list has expired"),
    ])
  func unusedList(off: RoutePlan.DirectOff, words: String) throws {
    #expect(Waterfall(try exchange(route: route(off: off))).text(columns: 80).contains("ROUTE    \(words)\n"))
  }

  @Test(
    "the ROUTE line states why the request fell back to DNS",
    arguments: [
      (
        RouteReport.Fallback.circuitsOpen, "DNS; no listed address is usable; some failed or sent Retry-After"
      ),
      (.excluded, "DNS; all listed addresses are excluded"),
    ])
  func fallback(reason: RouteReport.Fallback, words: String) throws {
    let plan = RoutePlan(
      origin: Samples.origin, policy: .fastest,
      candidates: [.init(Samples.address("203.0.113.7"), score: nil, source: .list)],
      legs: [.init(.dns, source: .dns)], noneUsable: reason)
    let leg = RouteReport.Leg(
      address: Samples.address("198.51.100.4"), source: .dns, started: .zero, ended: .milliseconds(5),
      outcome: .won)
    let text = Waterfall(try exchange(route: RouteReport(plan: plan, legs: [leg]))).text(columns: 80)
    #expect(text.contains("ROUTE    \(words)\n"))
  }

  @Test func namesTheProxyThatFailed() {
    let leg = RouteReport.Leg(
      address: nil, source: .dns, started: .zero, ended: .milliseconds(5), outcome: .failed,
      failure: LegFailure(.proxy, "http://127.0.0.1:9 refused the connection"))
    let text = Waterfall(failed: Self.url, route(off: .proxy, legs: [leg])).text(columns: 80)
    #expect(text.contains("\n proxy  dns   failed   TTTT"))
    #expect(text.contains("\n proxy: http://127.0.0.1:9 refused the connection\n"))
  }

  /// The message of this failure begins with the address, so the text does not write the address before it.
  @Test func namesAnAddressOnce() {
    let leg = RouteReport.Leg(
      address: Samples.address("127.0.0.9"), source: .list, started: .zero, ended: .milliseconds(5),
      outcome: .failed, failure: LegFailure(.refused, "127.0.0.9:443 refused the connection"))
    let text = Waterfall(failed: Self.url, route(off: nil, legs: [leg])).text(columns: 80)
    #expect(text.hasSuffix("\n\n 127.0.0.9:443 refused the connection\n"))
  }

  @Test("the waterfall shows the first 12 of 5000 candidates and counts the rest")
  func manyCandidates() throws {
    let candidates = (1...5000).map { index in
      RouteReport.Candidate(IPAddress(v4: 0xcb00_7100 + UInt32(index)), score: nil, source: .list)
    }
    let text = Waterfall(try exchange(route: route(off: nil, candidates: candidates))).text(columns: 80)
    #expect(text.contains("\n12  203.0.113.12"))
    #expect(!text.contains("203.0.113.13"))
    #expect(text.contains("\n    and 4988 more\n"))
  }

  @Test(
    "no line is wider than the terminal, and no escape character of an error passes",
    arguments: [80, 81, 200])
  func fitsTheTerminal(columns: Int) throws {
    let long = "2001:db8:1111:2222:3333:4444:5555:6666"
    let leg = RouteReport.Leg(
      address: Samples.address(long), source: .list, started: .zero, ended: .seconds(75), outcome: .cancelled)
    let candidate = RouteReport.Candidate(
      Samples.address(long), score: .seconds(10), source: .list,
      excluded: .failures(
        inARow: 3,
        last: LegFailure(.tls, "the handshake\u{1b}[31m took " + String(repeating: "long.", count: 40))))
    let url = "https://api.example.com/" + String(repeating: "path/", count: 60)
    let text = Waterfall(
      try exchange(url, route: route(off: nil, candidates: [candidate], legs: Samples.lost.legs + [leg]))
    ).text(columns: columns)
    #expect(text.split(separator: "\n").allSatisfy { $0.count <= columns })
    #expect(!text.contains("\u{1b}"))
  }

  @Test("the chart draws at least one character for each short piece of a bar")
  func shortBars() {
    let legs = (0..<5).map { index in
      RouteReport.Leg(
        address: Samples.address("203.0.113.\(index)"), source: .list, started: .milliseconds(index * 100),
        connected: .milliseconds(index * 100 + 1), secured: .milliseconds(index * 100 + 2),
        ended: .milliseconds(index * 100 + 2), outcome: index == 4 ? .won : .lost)
    }
    let lines = LegChart(route(off: nil, legs: legs), nil).lines(80)
    #expect(lines.count == 7)
    #expect(lines[1...4].allSatisfy { $0.contains("TS") })
    // The last bar is at the end of the axis, so the chart cuts the part that does not fit.
    #expect(lines[5].contains("T"))
  }

  /// A transfer of 1 ms after a wait of 99 ms is the usual case. It must not be cut off at the right edge.
  @Test("a bar shows each phase that took time, in order, and is no longer than the chart", arguments: 1...5)
  func bars(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    for _ in 0..<500 {
      let width = Int.random(in: 6...60, using: &random)
      var now = Duration.zero
      let pieces = LegChart.Phase.allCases.map { phase in
        let start = now + .microseconds(random.isOne(in: 3) ? Int.random(in: 0...100_000, using: &random) : 0)
        let length = [0, 1, 100, 10_000, 1_000_000, 60_000_000].randomElement(using: &random) ?? 0
        now = start + .microseconds(length)
        return LegChart.Piece(phase, from: start, to: now)
      }
      let bar = LegChart.bar(pieces, now, width)
      #expect(bar.count <= width)
      var shown: [Character] = []
      for character in bar where character != " " && character != shown.last { shown.append(character) }
      #expect(shown == pieces.filter { !$0.range.isEmpty }.map(\.phase.rawValue), "\(bar)")
    }
  }
}
