import FoundationEssentials
import NetOptTestSupport
import TestTools
import Testing

/// Debian's chromium in headless mode.
enum Browser {
  /// Why tests that need chromium are skipped.
  static let missing = "chromium is not installed: apt-get install chromium"
  private static let program = "/usr/bin/chromium"

  /// The colour scheme that the user prefers (CSS: prefers-color-scheme).
  enum Scheme: String, CaseIterable { case light, dark }

  /// The measured appearance of a page.
  struct Look: Decodable {
    /// A chart, which is an SVG image in the page.
    struct Chart: Decodable {
      var id: String
      var role: String
      var title: String
      var description: String
      /// The titles of the axes.
      var axes: [String]
      /// The number of lines, bars, dots and bands.
      var marks: Int
      /// The number of texts that reach beyond the chart.
      var outside: Int
    }

    /// The number of sections of the report.
    var sections: Int
    var charts: [Chart]
    /// The excess of the page's width over the window's width, in pixels.
    var overflow: Int
    /// Whether the page has a dark background.
    var isDark: Bool
    /// The contrast ratio between the text and the page (WCAG 2.1, 1.4.3).
    var contrast: Double
    /// The number of places where the browser found a syntax error (`parsererror`).
    var errors: Int
  }

  static var isInstalled: Bool { FileManager.default.isExecutableFile(atPath: program) }

  /// Opens a page and measures it with a script. The page's Content-Security-Policy forbids scripts, so the
  /// function removes the line with this policy.
  ///
  /// - Parameter width: the width of the window, in pixels.
  static func look(at page: String, in scheme: Scheme, width: Int = 1000) async throws -> Look {
    let policy = try #require(page.firstRange(of: "<meta http-equiv"))
    let end = try #require(page[policy.lowerBound...].firstRange(of: "\n"))
    let open = page.replacingCharacters(policy.lowerBound..<end.upperBound)
      .replacing("</body>", with: "<script>\(script)</script></body>")
    let dom = try await run(["--dump-dom", "--window-size=\(width),1400"], on: open, in: scheme)
    let start = try #require(dom.firstRange(of: "<pre id=\"look\">"), "\(dom.suffix(2000))")
    let text = dom[start.upperBound...].prefix { $0 != "<" }
    return try JSONDecoder().decode(
      Look.self, from: Data(text.replacing("&amp;", with: "&").replacing("&gt;", with: ">").utf8))
  }

  /// Prints a page to PDF, and returns the number of sheets.
  static func print(_ page: String) async throws -> Int {
    let file = try TemporaryDirectory.make("print") + "/page.pdf"
    _ = try await run(["--print-to-pdf=\(file)", "--no-pdf-header-footer"], on: page, in: .dark)
    let bytes = try Data(contentsOf: URL(filePath: file))
    let text = String(decoding: bytes, as: UTF8.self)
    #expect(text.hasPrefix("%PDF-"))
    return text.split(separator: "/Type /Page\n").count - 1
  }

  /// Opens a page without access to the network, and returns what chromium prints.
  private static func run(_ options: [String], on page: String, in scheme: Scheme) async throws -> String {
    let directory = try TemporaryDirectory.make("browser")
    try Data(page.utf8).write(to: URL(filePath: "\(directory)/page.html"))
    // Root may not start a sandbox within a sandbox.
    let child = try ChildProcess(
      program,
      [
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
        "--disable-extensions", "--user-data-dir=\(directory)/profile",
        "--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=2000",
        "--blink-settings=preferredColorScheme=\(scheme == .dark ? 0 : 1)",
      ] + options + ["file://\(directory)/page.html"], in: directory)
    try await wait(for: "chromium to end", within: .seconds(120)) { child.exitStatus() != nil }
    return String(decoding: try Data(contentsOf: URL(filePath: child.output)), as: UTF8.self)
  }

  /// JavaScript that measures the page, and adds the result to it: JSON of `Look` in `<pre id="look">`.
  private static let script = #"""
    const box = (e) => e.getBoundingClientRect();
    const light = (colour) => {
      const parts = colour.match(/[\d.]+/g).slice(0, 3).map(Number).map((v) => {
        v /= 255;
        return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
    };
    const style = getComputedStyle(document.body);
    const [page, ink] = [light(style.backgroundColor), light(style.color)];
    const look = {
      sections: document.querySelectorAll("main > section").length,
      charts: [...document.querySelectorAll("figure svg")].map((svg) => ({
        id: svg.id,
        role: svg.getAttribute("role"),
        title: svg.querySelector("title").textContent,
        description: svg.querySelector("desc").textContent,
        axes: [...svg.querySelectorAll(".axis .title")].map((e) => e.textContent),
        marks: svg.querySelectorAll(".line, rect, .dot, .band").length,
        outside: [...svg.querySelectorAll("text")].filter((e) => {
          const [a, b] = [box(e), box(svg)];
          return a.left < b.left - 1 || a.right > b.right + 1 || a.top < b.top - 1 || a.bottom > b.bottom + 1;
        }).length,
      })),
      overflow: Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth),
      isDark: page < 0.2,
      contrast: (Math.max(page, ink) + 0.05) / (Math.min(page, ink) + 0.05),
      errors: document.querySelectorAll("parsererror").length,
    };
    const pre = document.createElement("pre");
    pre.id = "look";
    pre.textContent = JSON.stringify(look);
    document.body.append(pre);
    """#
}

extension String {
  /// Returns the text without the characters in the range.
  fileprivate func replacingCharacters(_ range: Range<Index>) -> String {
    String(self[..<range.lowerBound]) + String(self[range.upperBound...])
  }
}
