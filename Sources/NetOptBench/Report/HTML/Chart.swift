/// A chart in SVG, with a horizontal axis, and with a vertical axis or named rows. For screen readers, its
/// title and its description say in words what it shows. All positions and lengths are in units of the SVG's
/// view box. Positions count from its top left corner.
struct Chart {
  /// The width of every chart.
  static let width = 720.0
  /// The default width of the left margin.
  private static let left = 64.0
  /// The width of the right margin.
  private static let right = 16.0
  /// The height of the margin above the axes.
  private static let top = 12.0
  /// The height of the margin below the axes, which holds the tick labels and the title of the horizontal
  /// axis.
  private static let bottom = 44.0

  private let id: String
  private let title: String
  private let description: String
  /// The horizontal axis.
  private let x: Scale
  /// The vertical axis; `nil` when the chart has named rows instead.
  private let y: Scale?
  private let xTitle: String
  private let yTitle: String
  /// The height of the chart.
  private let height: Double
  /// The width of the left margin of this chart.
  private let left: Double
  /// The SVG elements added so far.
  private var content = ""

  /// Makes an empty chart.
  ///
  /// - Parameters:
  ///   - id: the identifier of the SVG element, which is unique on the page.
  ///   - title: the title, which screen readers read.
  ///   - description: the caption below the chart, which screen readers read too.
  ///   - x: the horizontal axis, from left to right, and its title.
  ///   - y: the vertical axis, from bottom to top, and its title; `nil` for named rows.
  ///   - margin: the width of the left margin.
  init(
    _ id: String, title: String, description: String, x: Scale, _ xTitle: String, y: Scale?, _ yTitle: String,
    height: Double = 300, margin: Double = Chart.left
  ) {
    self.id = id
    self.title = title
    self.description = description
    self.x = x
    self.y = y
    self.xTitle = xTitle
    self.yTitle = yTitle
    self.height = height
    left = margin
  }

  /// The horizontal position of a value of the horizontal axis.
  func xPosition(of value: Double) -> Double {
    left + x.position(of: value) * (Self.width - left - Self.right)
  }

  /// The vertical position of a value of the vertical axis. Without a vertical axis, the lower end of the
  /// area inside the margins.
  func yPosition(of value: Double) -> Double {
    height - Self.bottom - (y?.position(of: value) ?? 0) * (height - Self.bottom - Self.top)
  }

  /// The vertical position of the middle of a named row. The rows divide the height between the margins
  /// equally.
  ///
  /// - Parameters:
  ///   - index: the row's number, from 0 at the top.
  ///   - count: the number of rows in the chart.
  func row(_ index: Int, of count: Int) -> Double {
    Self.top + (Double(index) + 0.5) * (height - Self.bottom - Self.top) / Double(max(count, 1))
  }

  /// Adds a line through points, given as values of the two axes. Adds nothing for fewer than two points.
  ///
  /// - Parameter name: the CSS class, which determines the colour.
  mutating func line(_ points: [(Double, Double)], class name: String) {
    guard points.count > 1 else { return }
    let coordinates = points.map {
      "\(Markup.number(xPosition(of: $0.0))),\(Markup.number(yPosition(of: $0.1)))"
    }
    content += "<polyline class=\"line \(name)\" points=\"\(coordinates.joined(separator: " "))\"/>\n"
  }

  /// Adds the area between a lower and an upper line. Each point gives a value of the horizontal axis, and
  /// the values of both lines there. Adds nothing for fewer than two points.
  ///
  /// - Parameter name: the CSS class, which determines the colour.
  mutating func band(_ points: [(x: Double, low: Double, high: Double)], class name: String) {
    guard points.count > 1 else { return }
    let edge = points.map { ($0.x, $0.high) } + points.reversed().map { ($0.x, $0.low) }
    let coordinates = edge.map {
      "\(Markup.number(xPosition(of: $0.0))),\(Markup.number(yPosition(of: $0.1)))"
    }
    content += "<polygon class=\"band \(name)\" points=\"\(coordinates.joined(separator: " "))\"/>\n"
  }

  /// Adds a horizontal bar between two values of the horizontal axis.
  ///
  /// - Parameters:
  ///   - row: the vertical position of the bar's middle.
  ///   - thick: the height of the bar.
  ///   - title: the text that a browser shows when the pointer is on the bar.
  mutating func bar(
    _ row: Double, from start: Double, to end: Double, thick: Double, class name: String, _ title: String
  ) {
    let (low, high) = (xPosition(of: start), xPosition(of: end))
    content +=
      "<rect class=\"\(name)\" x=\"\(Markup.number(low))\" y=\"\(Markup.number(row - thick / 2))\" "
      + "width=\"\(Markup.number(max(high - low, 0.5)))\" height=\"\(Markup.number(thick))\">"
      + "<title>\(Markup.text(title))</title></rect>\n"
  }

  /// Adds a dot with its middle at a position in the chart. A browser shows `title` when the pointer is on
  /// the dot.
  mutating func dot(_ x: Double, _ y: Double, class name: String, _ title: String) {
    content +=
      "<circle class=\"dot \(name)\" cx=\"\(Markup.number(x))\" cy=\"\(Markup.number(y))\" r=\"4\">"
      + "<title>\(Markup.text(title))</title></circle>\n"
  }

  /// Adds a cross with its middle at a position in the chart, as the mark of a failure. A browser shows
  /// `title` when the pointer is on the cross.
  mutating func cross(_ x: Double, _ y: Double, class name: String, _ title: String) {
    let (a, b) = (Markup.number(x), Markup.number(y))
    content +=
      "<path class=\"cross \(name)\" d=\"M\(a) \(b)m-3-3l6 6m0-6l-6 6\"><title>\(Markup.text(title))</title></path>\n"
  }

  /// Adds the name of a row in the left margin.
  ///
  /// - Parameter row: the vertical position of the row's middle.
  mutating func name(_ text: String, row: Double) {
    content +=
      "<text class=\"name\" x=\"\(Markup.number(left - 8))\" y=\"\(Markup.number(row + 4))\">\(Markup.text(text))</text>\n"
  }

  /// Adds a horizontal line from the left margin to the right margin, at a value of the vertical axis.
  mutating func level(_ value: Double, class name: String) {
    let y = Markup.number(yPosition(of: value))
    content +=
      "<line class=\"\(name)\" x1=\"\(Markup.number(left))\" x2=\"\(Markup.number(Self.width - Self.right))\" y1=\"\(y)\" y2=\"\(y)\"/>\n"
  }

  /// The chart as HTML: the SVG in a figure with a caption.
  var markup: String {
    let size = "\(Markup.number(Self.width)) \(Markup.number(height))"
    return
      "<figure><svg id=\"\(id)\" role=\"img\" viewBox=\"0 0 \(size)\" aria-labelledby=\"\(id)-title \(id)-text\">\n"
      + "<title id=\"\(id)-title\">\(Markup.text(title))</title>\n"
      + "<desc id=\"\(id)-text\">\(Markup.text(description))</desc>\n" + axes + content
      + "</svg><figcaption>\(Markup.text(description))</figcaption></figure>\n"
  }

  /// The grid lines, the tick labels and the title of the horizontal axis, and of the vertical axis if the
  /// chart has one.
  private var axes: String {
    let base = height - Self.bottom
    var text = "<g class=\"axis\">\n"
    for tick in x.ticks {
      let x = Markup.number(xPosition(of: tick.value))
      text +=
        "<line x1=\"\(x)\" x2=\"\(x)\" y1=\"\(Markup.number(Self.top))\" y2=\"\(Markup.number(base))\"/>"
        + "<text class=\"below\" x=\"\(x)\" y=\"\(Markup.number(base + 16))\">\(tick.label)</text>\n"
    }
    for tick in y?.ticks ?? [] {
      let y = Markup.number(yPosition(of: tick.value))
      text +=
        "<line x1=\"\(Markup.number(left))\" x2=\"\(Markup.number(Self.width - Self.right))\" y1=\"\(y)\" y2=\"\(y)\"/>"
        + "<text class=\"name\" x=\"\(Markup.number(left - 6))\" y=\"\(Markup.number(yPosition(of: tick.value) + 4))\">\(tick.label)</text>\n"
    }
    let xMiddle = Markup.number((Self.width + left) / 2)
    text +=
      "<text class=\"below title\" x=\"\(xMiddle)\" y=\"\(Markup.number(height - 8))\">\(Markup.text(xTitle))</text>\n"
    if y != nil {
      let yMiddle = Markup.number(Self.top + (base - Self.top) / 2)
      text +=
        "<text class=\"below title\" transform=\"translate(14 \(yMiddle)) rotate(-90)\">\(Markup.text(yTitle))</text>\n"
    }
    return text + "</g>\n"
  }
}
