/// Functions that build HTML and SVG.
enum Markup {
  /// Escapes a text, so that it can be the content of an HTML element or the value of a quoted attribute.
  /// Also replaces the characters that terminals act on (`TextLayout.printable`).
  static func text(_ text: String) -> String {
    TextLayout.printable(text).replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(
      ">", with: "&gt;"
    )
    .replacing("\"", with: "&quot;").replacing("'", with: "&#39;")
  }

  /// Formats a number with at most one decimal, which is precise enough for a chart. A number that is not
  /// finite becomes `0`.
  static func number(_ value: Double) -> String {
    let tenths = (value * 10).rounded()
    guard tenths.isFinite else { return "0" }
    return Milliseconds.decimal(Int64(tenths), 1).replacing(".0", with: "")
  }

  /// A table with a heading row, as HTML. The first cell of each row is the row's heading. The caption, the
  /// headings and the cells are plain text, which the function escapes.
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

  /// A section of the page with a heading.
  ///
  /// - Parameters:
  ///   - id: the `id` attribute of the section, which is unique on the page.
  ///   - title: the plain text of the heading, which the function escapes.
  ///   - content: the HTML below the heading.
  static func section(_ id: String, _ title: String, _ content: String) -> String {
    "<section id=\"\(id)\" aria-labelledby=\"\(id)-title\">\n<h2 id=\"\(id)-title\">\(text(title))</h2>\n\(content)</section>\n"
  }

  /// A paragraph.
  ///
  /// - Parameters:
  ///   - content: the plain text, which the function escapes.
  ///   - name: the CSS class.
  static func paragraph(_ content: String, class name: String? = nil) -> String {
    "<p\(name.map { " class=\"\($0)\"" } ?? "")>\(text(content))</p>\n"
  }

  /// The legend of a chart.
  ///
  /// - Parameter items: for each item, an SVG shape in an area of 40 by 10 units, and the name of what the
  ///   shape stands for.
  static func legend(_ items: [(shape: String, name: String)]) -> String {
    let items = items.map { shape, name in
      "<li><svg class=\"key\" aria-hidden=\"true\" viewBox=\"0 0 40 10\">\(shape)</svg>\(text(name))</li>"
    }
    return "<ul class=\"legend\">\(items.joined())</ul>\n"
  }
}
