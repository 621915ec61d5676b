import NetOptBench
import NetOptCore
import Testing

@Suite struct TextReportTests {
  @Test("the text report of a normal run has ranks, verdict, failures, choice of the probe and phases")
  func normalRun() async throws {
    let text = TextReport(try await Fixtures.usual()).text
    #expect(
      text == """
        netopt bench  https://api.example.com/v1/ping         GET h2   run 20260822-7f3a
        4 of 5 targets, 80 warm + 10 cold rounds, order shuffled, 12.2 s

        RANK  by p50, ms, warm                                reference: dns (2 answers)
         #  TARGET              OK        p50 [95% CI]     p95      vs dns
         1= 203.0.113.7      80/80    25.0 [24.9 25.2]    25.5      -17.8%
         1= 203.0.113.9      80/80    25.1 [25.0 25.3]    25.6      -17.4%
         3= dns              80/80    30.4 [30.3 30.6]    30.9   reference
         3= 198.51.100.4     77/80    30.6 [30.5 30.7]    31.0 ~ (p<0.001)
         !  192.0.2.66     excluded  TLS: certificate is for *.portal.lan
        VERDICT direct beats dns by 5.4 ms [5.4 5.4] at p50 (p<0.001, Holm, 3 tests)
        FAILED  198.51.100.4: 3 connect of 90 requests [1.1 9.3] %
        PICKER  start-up ping chose 203.0.113.9; regret 0.100 ms, a tie with the best
        NOTE    p99 needs 368 samples of a target: raise -n or -z

        PHASES  median ms, cold, n=10 each
         203.0.113.7   TTTTTTTTSSSSSSSSSWWWWWWWWWWX              20.0+24.0+24.5+2.0
         203.0.113.9   TTTTTTTTSSSSSSSSSWWWWWWWWWWX              20.0+24.0+24.6+2.0
         dns           DDDDDTTTTTTTTSSSSSSSSSWWWWWWWWWWWWX       14.0+20.0+24.0+29.9+2.0
         198.51.100.4  TTTTTTTTSSSSSSSSSWWWWWWWWWWWWX            20.0+24.0+30.0+2.0
                       D dns  T tcp  S tls  W wait  X transfer

        """)
  }

  @Test("the text report of a run without a usable target says why each target is excluded")
  func noUsableTarget() async throws {
    let text = TextReport(try await Fixtures.dead()).text
    #expect(
      text == """
        netopt bench  https://api.example.com/v1/ping          GET -   run 20260822-7f3a
        0 of 3 targets, 0 warm + 0 cold rounds, order shuffled, 0.0 s

        RANK  by p50, ms, warm                                              no reference
         #  TARGET              OK        p50 [95% CI]
         !  203.0.113.7    excluded  connect: refused
         !  203.0.113.9    excluded  connect: refused
         !  dns            excluded  connect: refused
        Nothing was measured: no target could be used.

        """)
  }

  @Test("the text report of a stopped run says that it is partial, and ranks by the cold block")
  func stoppedRun() async throws {
    let text = TextReport(try await Fixtures.interrupted()).text
    #expect(
      text == """
        netopt bench  https://api.example.com/v1/ping         GET h2   run 20260822-7f3a
        2 of 2 targets, 2 warm + 6 cold rounds, order shuffled, 1.6 s
        PARTIAL: interrupted; the unfinished round is excluded

        RANK  by p50, ms, cold                                reference: dns (2 answers)
         #  TARGET              OK        p50 [95% CI]      vs dns
         1= 203.0.113.7        6/6    70.0 [70.0 70.0]  ~ (p=1.00)
         1= dns                6/6    70.0 [70.0 70.0]   reference
        VERDICT no target beats dns: no significant difference to the best of them
                (Holm, 1 test)
        PICKER  start-up ping chose 203.0.113.7; regret 0, the best by p50
        NOTE    p95 needs 72, p99 needs 368 samples of a target: raise -n or -z

        PHASES  median ms, cold, n=6 each
         203.0.113.7   TTTTTTTTTTTTSSSSSSSSSSSSSSWWWWWWWWWWWWWWX      20.0+24.0+24.0+2.0
         dns           TTTTTTTTTTTTSSSSSSSSSSSSSSWWWWWWWWWWWWWWX      20.0+24.0+24.0+2.0
                       T tcp  S tls  W wait  X transfer

        """)
  }

  @Test("when all requests of a run failed, the text report counts the failures and ranks no target")
  func failedRun() async throws {
    let text = TextReport(try await Fixtures.failing()).text
    #expect(
      text == """
        netopt bench  https://api.example.com/v1/ping         GET h2   run 20260822-7f3a
        2 of 2 targets, 6 warm + 6 cold rounds, order shuffled, 0.1 s

        RANK  by p50, ms, warm                                reference: dns (2 answers)
         #  TARGET              OK        p50 [95% CI]
         -  203.0.113.7       0/6!             timeout
         -  dns               0/6!             timeout
        FAILED  203.0.113.7: 12 timeout of 12 requests [75.8 100.0] %
        FAILED  dns: 12 timeout of 12 requests [75.8 100.0] %
        PICKER  start-up ping chose 203.0.113.7; regret unknown: the address has no p50
        NOTE    !: significantly more than 5 % of the requests to it failed, so it
                cannot be the best target
        NOTE    p95 needs 72, p99 needs 368 samples of a target: raise -n or -z

        PHASES  median ms, cold, n=0 each
         a median needs 6 samples of a target: raise -n or -z

        """)
  }

  @Test("no line of the text report is wider than 80 columns, and addresses are not cut")
  func lineWidth() async throws {
    let long = try #require(IPAddress("2001:db8:1111:2222:3333:4444:5555:6666"))
    let presented = (0..<30).map { "host\($0).example" }
    var settings = try Fixtures.settings([long, Fixtures.first, Fixtures.impostor])
    settings.request = try NetOptRequest(
      .get, "https://api.example.com/" + String(repeating: "x", count: 200))
    let report = await Fixtures.report(settings, choice: long) { request, _ throws(NetOptError) in
      if request.target == Fixtures.impostor.description {
        throw .leg(.certificateName(presented: presented), .certificateName)
      }
      return .answer(
        request, .cold(dns: 123_456, tcp: 123_456, tls: 123_456, wait: 123_456, transfer: 123_456))
    }
    let lines = TextReport(report).text.split(separator: "\n")
    #expect(lines.allSatisfy { $0.count <= 80 })
    // The table and the bars have the whole address, because two addresses could look alike when they are
    // cut.
    #expect(lines.count { $0.hasSuffix(" 2001:db8:1111:2222:3333:4444:5555:6666") } == 2)
  }

  @Test("the text report replaces control characters in names from certificates")
  func certificateNames() async throws {
    let report = await Fixtures.report(try Fixtures.settings()) { _, _ throws(NetOptError) in
      throw .leg(.certificateName(presented: ["\u{1b}[2J.example"]), .certificateName)
    }
    #expect(!TextReport(report).text.contains("\u{1b}"))
  }

  @Test("the text report colours better targets green and failures red")
  func colours() async throws {
    let text = TextReport(try await Fixtures.usual(), colour: TextColour(isOn: true)).text
    let green = text.split(separator: "\n").filter { $0.contains("\u{1b}[32m") }
    #expect(green.map { $0.contains("203.0.113.") } == [true, true])
    let red = text.split(separator: "\n").filter { $0.contains("\u{1b}[31m") }
    try #require(red.count == 3)
    #expect(red[0].contains("198.51.100.4"))
    #expect(red[1].contains("excluded"))
    #expect(red[2].contains("FAILED"))
  }

  @Test("the text report of a run without targets says that there is no target")
  func noTargets() async throws {
    let report = await Fixtures.report(try Fixtures.settings([], dns: false)) { request, _ in .answer(request)
    }
    #expect(TextReport(report).text.contains("Nothing was measured: there is no target."))
    #expect(report.stopReason == .noTarget)
  }

  @Test("reports do not name a target with many failures as the best, however fast it is")
  func fastFailures() async throws {
    var settings = try Fixtures.settings(length: .rounds(cold: 0, warm: 80))
    settings.blocks = [.warm]
    let report = await Fixtures.report(settings) { request, number throws(NetOptError) in
      if request.target == Fixtures.first.description, number > 3, number % 3 == 0 {
        throw .leg(.reset, .receiveFailed)
      }
      let wait =
        switch request.target {
        case Fixtures.first.description: 10.0
        case Fixtures.second.description: 20.0
        default: 30.0
        }
      return .answer(request, .warm(wait + Double(number % 10) / 10))
    }
    #expect(report.targets.map(\.failsOften) == [true, false, false])
    let text = TextReport(report).text
    #expect(text.contains("VERDICT direct beats dns by 10.0 ms"))
    #expect(text.contains("not considered (too many failures): 203.0.113.7"))
    let row = try #require(text.split(separator: "\n").first { $0.contains(" 203.0.113.7 ") })
    #expect(row.contains("/80! "))
    #expect(text.contains("NOTE    !: significantly more than 5 % of the requests to it failed"))
    #expect(MarkdownReport(report).text.contains("/80! |"))
    // In a run without the DNS target, the report does not name this target as the best either.
    settings.targets.removeLast()
    let listed = await Fixtures.report(settings) { request, number throws(NetOptError) in
      if request.target == Fixtures.first.description, number > 3, number % 3 == 0 {
        throw .leg(.reset, .receiveFailed)
      }
      return .answer(request, .warm(request.target == Fixtures.first.description ? 10 : 20))
    }
    #expect(
      TextReport(listed).text.contains("VERDICT 203.0.113.9 is the only usable target; not considered"))
  }
}
