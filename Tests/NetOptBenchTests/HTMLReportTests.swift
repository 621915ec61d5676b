import FoundationEssentials
import NetOptCore
import NetOptTestSupport
import Testing

@testable import NetOptBench

@Suite struct HTMLReportTests {
  @Test(
    "every HTML report has its seven sections, and no scripts, links or external resources",
    arguments: Situation.allCases)
  func sections(situation: Situation) async throws {
    let page = HTMLReport(try await situation.report()).text
    for part in ["verdict", "distribution", "phases", "rounds", "difference", "regret", "data"] {
      #expect(page.contains("<section id=\"\(part)\""))
    }
    #expect(
      !page.contains("http://") && !page.contains("<script") && !page.contains(" src=")
        && !page.contains("url("))
    // The measured URL is plain text, and the page has no link.
    #expect(!page.contains("href"))
  }

  @Test("the HTML report escapes names from certificates")
  func certificateNames() async throws {
    let report = await Fixtures.report(try Fixtures.settings()) { _, _ throws(NetOptError) in
      throw .leg(.certificateName(presented: ["<script>alert(1)</script>\u{1b}[2J"]), .certificateName)
    }
    let page = HTMLReport(report).text
    #expect(page.contains("&lt;script&gt;alert(1)"))
    #expect(!page.contains("<script") && !page.contains("\u{1b}"))
  }

  @Test("the HTML report of 100,000 samples is smaller than 1 MB")
  func pageSize() throws {
    let page = HTMLReport(try Self.long()).text
    #expect(page.utf8.count < 1_000_000, "\(page.utf8.count)")
    #expect(page.contains("over 25000 rounds"))
  }

  @Test(
    "a browser shows all charts legibly in light and dark colours",
    .enabled("\(Browser.missing)") { Browser.isInstalled }, arguments: [Browser.Scheme.light, .dark])
  func browser(scheme: Browser.Scheme) async throws {
    let found = try await Browser.look(at: HTMLReport(try await Fixtures.charted()).text, in: scheme)
    #expect(found.sections == 7)
    // The charts: ranking, ECDF, percentiles, two charts of phases, rounds, differences, regret.
    #expect(found.charts.count == 8)
    for chart in found.charts {
      #expect(chart.role == "img" && !chart.title.isEmpty && chart.description.count > 40, "\(chart.id)")
      #expect(
        chart.axes.count == (["ecdf", "percentiles", "over-time", "differences"].contains(chart.id) ? 2 : 1))
      #expect(
        chart.axes.allSatisfy { $0.contains("ms") || $0.contains("%") || $0 == "round" }, "\(chart.axes)")
      #expect(chart.marks > 2, "\(chart.id) shows nothing")
      #expect(chart.outside == 0, "\(chart.id) has text outside of it")
    }
    #expect(found.overflow == 0, "the page is wider than the window")
    #expect(found.isDark == (scheme == .dark))
    #expect(found.contrast >= 4.5)
    #expect(found.errors == 0)
  }

  @Test(
    "the HTML report fits into a window of 500 pixels",
    .enabled("\(Browser.missing)") { Browser.isInstalled })
  func narrowWindow() async throws {
    let found = try await Browser.look(
      at: HTMLReport(try await Fixtures.charted()).text, in: .light, width: 500)
    #expect(found.overflow == 0)
  }

  @Test("the HTML report prints on at most 12 sheets", .enabled("\(Browser.missing)") { Browser.isInstalled })
  func printedPage() async throws {
    let pages = try await Browser.print(HTMLReport(try await Fixtures.charted()).text)
    #expect((1...12).contains(pages), "\(pages) pages")
  }

  /// The report of four targets with 25,000 warm rounds. Every 500th request times out.
  private static func long() throws -> BenchReport {
    var settings = try Fixtures.settings(
      [Fixtures.first, Fixtures.second, Fixtures.third], length: .rounds(cold: 0, warm: 25_000))
    settings.blocks = [.warm]
    var report = BenchReport(settings, Fixtures.context)
    report.rounds = [.warm: 25_000]
    var noise = Noise(seed: 9)
    for index in report.targets.indices {
      var series = SampleSeries()
      for round in 0..<25_000 {
        let isLost = round % 500 == 499
        series.append(
          isLost
            ? Sample(.failed(SampleFailure(.timeout, code: "timeout", reason: "too slow")))
            : Sample(.answered(status: 200), timings: .warm(20 + abs(noise.normal()) * 10), reused: true))
      }
      report.targets[index].add(series, of: .warm, order: OrderStatistics())
    }
    return report
  }

  /// Printed pages have no backgrounds. Without colours, dashes distinguish the lines.
  @Test("a legend shows lines and bars in the same style as the chart")
  func legends() async throws {
    let text = HTMLReport(try await Fixtures.usual()).text
    let legend = try #require(text.firstRange(of: "<ul class=\"legend\">"))
    #expect(text[legend.upperBound...].hasPrefix("<li><svg class=\"key\" aria-hidden=\"true\""))
    #expect(
      text.contains("<line class=\"line c1\" x1=\"0\"") && text.contains(".line.c1{stroke-dasharray:6 3}"))
    #expect(text.contains("<rect class=\"p-tls\" width=\"40\"") && !text.contains("background:var(--c)"))
  }
}

extension Fixtures {
  /// The report of a run with data for every chart.
  static func charted() async throws -> BenchReport {
    let long = IPAddress("2001:db8:1111:2222:3333:4444:5555:6666")
    let settings = try settings(
      [first, second, third, impostor] + [long].compactMap { $0 }, length: .rounds(cold: 40, warm: 400))
    var noise = Noise(seed: 8)
    let waits = (0..<4001).map { _ in abs(noise.normal()) * 3 }
    return await report(settings, choice: second) { request, number throws(NetOptError) in
      if request.target == impostor.description {
        throw .leg(.certificateName(presented: ["*.portal.lan"]), .certificateName)
      }
      if request.target == third.description, number > 50, number % 40 == 0 {
        throw .leg(.reset, .receiveFailed)
      }
      let base: Double = request.target == "dns" ? 30 : request.target.hasPrefix("203") ? 24 : 29
      let wait = base + waits[(number * 7 + request.target.count * 13) % waits.count] + Double(number) / 200
      return .answer(
        request,
        request.options.connection == .fresh
          ? .cold(dns: request.target == "dns" ? 14 : 0, wait: wait) : .warm(wait))
    }
  }
}
