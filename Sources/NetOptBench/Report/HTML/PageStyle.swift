/// The style sheet of the HTML report, with colours for light screens, dark screens and print.
enum PageStyle {
  /// For each line of a chart: its colour on a light screen and in print, its colour on a dark screen, and
  /// its dash pattern. The colours are derived from the palette of Okabe and Ito, which most people with a
  /// colour vision deficiency can distinguish. The dash patterns make the lines differ without colour.
  private static let colours = [
    ("#0072b2", "#56b4e9", "none"), ("#d55e00", "#ff9d4d", "6 3"), ("#007a5a", "#3ddbaa", "2 2"),
    ("#a6447c", "#e6a1c8", "8 3 2 3"), ("#7a6a00", "#f0e442", "12 4"), ("#4b4b4b", "#bdbdbd", "1 3"),
    ("#8c2d04", "#fdae6b", "4 4"), ("#4a3fa8", "#b3a9ff", "10 2 2 2"),
  ]
  /// For each phase: the colour of its bars on a light screen and in print, and their colour on a dark
  /// screen.
  private static let phases: [SamplePhase: (String, String)] = [
    .queue: ("#9a9a9a", "#8a8a8a"), .dns: ("#b08600", "#e6b800"), .tcp: ("#0072b2", "#56b4e9"),
    .tls: ("#a6447c", "#e6a1c8"), .send: ("#8c2d04", "#fdae6b"), .wait: ("#007a5a", "#3ddbaa"),
    .transfer: ("#4a3fa8", "#b3a9ff"),
  ]

  /// The CSS text.
  static var text: String {
    let light = variables(\.0, \.0)
    let dark = variables(\.1, \.1)
    let lines = colours.indices.map { index in
      ".c\(index){--c:var(--t\(index))}.line.c\(index){stroke-dasharray:\(colours[index].2)}"
    }.joined(separator: "\n")
    let bars = SamplePhase.allCases.map { ".p-\($0.rawValue){--c:var(--p-\($0.rawValue));fill:var(--c)}" }
      .joined(separator: "\n")
    return """
      :root{--page:#fff;--ink:#1a1a1a;--dim:#595959;--grid:#dedede;--bad:#b00020;--mark:#f4f4f4;\(light)}
      @media (prefers-color-scheme:dark){:root{--page:#14171a;--ink:#ececec;--dim:#a8adb3;--grid:#33383d;--bad:#ff8a80;--mark:#1e2327;\(dark)}}
      @media print{:root{--page:#fff;--ink:#000;--dim:#444;--grid:#ccc;--bad:#900;--mark:#fff;\(light)}section,figure{break-inside:avoid}body{max-width:none!important}}
      body{background:var(--page);color:var(--ink);font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:1rem}
      h1{font-size:1.4rem;margin:0}h2{font-size:1.15rem;border-top:1px solid var(--grid);padding-top:1rem}
      header p,figcaption,caption{color:var(--dim)}p,code{overflow-wrap:anywhere}
      .verdict{font-size:1.2rem;font-weight:600;background:var(--mark);padding:.6rem .8rem}
      .bad{color:var(--bad)}figure{margin:1rem 0}figcaption,caption{font-size:.85rem;text-align:left}
      svg{width:100%;height:auto;display:block;font:12px system-ui,sans-serif}svg text{fill:var(--ink)}
      .axis line,.zero{stroke:var(--grid)}.zero{stroke:var(--ink)}.axis .title{fill:var(--dim)}.below{text-anchor:middle}.name{text-anchor:end}
      .line{fill:none;stroke:var(--c);stroke-width:1.6}.band{fill:var(--c);opacity:.16}.dot,.span{fill:var(--c)}.cross{stroke:var(--c);stroke-width:1.6;fill:none}
      .legend{list-style:none;display:flex;flex-wrap:wrap;gap:.3rem 1.2rem;padding:0;font-size:.9rem}svg.key{display:inline-block;width:2.5rem;height:.7rem;margin-right:.4rem}.key .line{stroke-width:3}
      .wide{overflow-x:auto;margin:1rem 0}table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums}th,td{padding:.2rem .6rem;text-align:right;border-bottom:1px solid var(--grid)}th[scope=row],td:last-child{text-align:left}
      pre{background:var(--mark);padding:.6rem .8rem;white-space:pre-wrap;overflow-wrap:anywhere}
      \(lines)
      \(bars)
      """
  }

  /// The declarations of the CSS variables with the colours: `--t0` is the colour of the first line, and
  /// `--p-dns` the colour of the phase `dns`.
  ///
  /// - Parameters:
  ///   - colour: selects the colour of a line from an element of `colours`.
  ///   - phase: selects the colour of a phase from a value of `phases`.
  private static func variables(
    _ colour: KeyPath<(String, String, String), String>, _ phase: KeyPath<(String, String), String>
  ) -> String {
    let targets = colours.enumerated().map { "--t\($0.offset):\($0.element[keyPath: colour])" }
    let parts = SamplePhase.allCases.compactMap { part in
      phases[part].map { "--p-\(part.rawValue):\($0[keyPath: phase])" }
    }
    return (targets + parts).joined(separator: ";")
  }
}
