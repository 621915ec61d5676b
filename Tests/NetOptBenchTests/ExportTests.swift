import NetOptBench
import NetOptCore
import Testing

@Suite struct ExportTests {
  @Test("the sample table has one line for each sample, failures included")
  func sampleLines() async throws {
    let report = try await Fixtures.usual()
    let lines = SampleTable(report).chunks.joined().split(separator: "\n")
    // The header, and four targets with 10 cold and 80 warm rounds.
    #expect(lines.count == 1 + 4 * 90)
    let columns = lines[0].split(separator: ",")
    #expect(columns.prefix(5) == ["block", "round", "target", "outcome", "lag_us"])
    #expect(
      lines.allSatisfy { $0.split(separator: ",", omittingEmptySubsequences: false).count == columns.count })
    #expect(lines.contains("warm,0,203.0.113.7,ok,0,24900,24900,0,0,0,0,0,24400,500"))
    #expect(lines.count { $0.contains(",198.51.100.4,connect,") } == 3)
  }

  @Test("the Markdown report has a row for each target, with the same number of cells")
  func markdownTable() async throws {
    let text = MarkdownReport(try await Fixtures.usual()).text
    let lines = text.split(separator: "\n")
    #expect(lines[0].hasPrefix("| # | Target | OK | p50 [ms] |"))
    #expect(
      lines[2].hasPrefix(
        "| 1= | `203.0.113.7` | 80/80 | 25.0 | 24.9 to 25.2 | 25.5 | - | -17.8 % (p<0.001) |"))
    #expect(
      text.contains(
        "| ! | `192.0.2.66` | excluded | TLS\\: certificate is for \\*\\.portal\\.lan | | | | |\n"))
    let cells = Set(
      lines.filter { $0.hasPrefix("|") }.map {
        $0.split(separator: "|", omittingEmptySubsequences: false).count
      })
    #expect(cells == [10])
  }

  @Test("the Markdown report of a run without a usable target says why each is excluded")
  func noUsableTarget() async throws {
    #expect(MarkdownReport(try await Fixtures.dead()).text.contains("| excluded | connect\\: refused |"))
  }

  /// Names from a certificate are plain text. A reader of Markdown must not treat them as markup.
  @Test("the Markdown report escapes names from certificates")
  func certificateNames() async throws {
    let names = ["a|b", "[x](http://e)", "<img src=x>", "`c`", "|\u{301}", "\\|"]
    let report = await Fixtures.report(try Fixtures.settings([Fixtures.first], dns: false)) {
      _, _ throws(NetOptError) in
      throw .leg(.certificateName(presented: names), .certificateName)
    }
    let row = try #require(MarkdownReport(report).text.split(separator: "\n").first { $0.hasPrefix("| ! |") })
    let reason =
      "TLS\\: certificate is for a\\|b\\, \\[x\\]\\(http\\:\\/\\/e\\)\\, \\<img src\\=x\\>\\, \\`c\\`\\, \\|\u{301}\\, \\\\\\|"
    #expect(row == "| ! | `203.0.113.7` | excluded | \(reason) | | | | |")
  }
}
