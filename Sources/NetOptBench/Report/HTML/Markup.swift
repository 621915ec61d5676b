/// Functions that build HTML and SVG.
enum Markup {
  /// Escapes a text for HTML, and replaces the characters that terminals act on.
  static func text(_ text: String) -> String {
    TextLayout.printable(text).replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(
      ">", with: "&gt;"
    )
    .replacing("\"", with: "&quot;").replacing("'", with: "&#39;")
  }

  /// A number with at most one decimal, which is precise enough for a chart.
  static func number(_ value: Double) -> String {
    let tenths = (value * 10).rounded()
    guard tenths.isFinite else { return "0" }
    return Milliseconds.decimal(Int64(tenths), 1).replacing(".0", with: "")
  }

  /// A table with a heading row. The first cell of each row is the row's heading.
  static func table(_ caption: String, _ headings: [String], _ rows: [[String]]) -> String {
    let head = headings.map { "<th scope=\"col\">\(text($0))</th>" }.joined()
    let body = rows.map { cells in
      "<tr><th scope=\"row\">\(text(cells.first ?? ""))</th>"
        + cells.dropFirst().map { "<td>\(text($0))</td>" }.joined() + "</tr>"
    }
    return
      "<div class=\"wide\"><table><caption>\(text(caption))</caption><thead><tr>\(head)</tr></thead><tbody>\n"
      + body.joined(separator: "\n") + "\n</tbody></table></div>\n"
  }

  /// A section with a heading.
  static func section(_ id: String, _ title: String, _ content: String) -> String {
    "<section id=\"\(id)\" aria-labelledby=\"\(id)-title\">\n<h2 id=\"\(id)-title\">\(text(title))</h2>\n\(content)</section>\n"
  }

  /// A paragraph.
  static func paragraph(_ content: String, class name: String? = nil) -> String {
    "<p\(name.map { " class=\"\($0)\"" } ?? "")>\(text(content))</p>\n"
  }

  /// The legend of a chart.
  ///
  /// - Parameter items: a shape within 40 by 10 units, and its meaning.
  static func legend(_ items: [(shape: String, name: String)]) -> String {
    let items = items.map { shape, name in
      "<li><svg class=\"key\" aria-hidden=\"true\" viewBox=\"0 0 40 10\">\(shape)</svg>\(text(name))</li>"
    }
    return "<ul class=\"legend\">\(items.joined())</ul>\n"
  }
}
