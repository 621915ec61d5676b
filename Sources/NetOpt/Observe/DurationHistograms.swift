/// Histograms of durations, by number. The bounds are those that OpenTelemetry advises for the durations of HTTP
/// requests (semantic conventions, `http.client.request.duration`).
///
/// All counts are in one array, because every call counts in several histograms.
struct DurationHistograms: Sendable {
  /// The upper bounds of all buckets but the last, in seconds. Each bucket contains its bound.
  static let bounds = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]
  private static let nanosecondBounds = bounds.map { Int64($0 * 1e9) }
  /// The length of a histogram in `cells`: its buckets, and its sum.
  private static let width = bounds.count + 2

  private var cells: [Int64]

  init(count: Int = 0) { cells = [Int64](repeating: 0, count: count * Self.width) }

  var count: Int { cells.count / Self.width }

  /// Adds an empty histogram, and returns its number.
  mutating func append() -> Int {
    cells.append(contentsOf: repeatElement(0, count: Self.width))
    return count - 1
  }

  /// Counts a duration in nanoseconds. A negative one counts as 0.
  mutating func add(_ nanoseconds: Int64, to number: Int) {
    let nanoseconds = max(0, nanoseconds)
    let bounds = Self.nanosecondBounds
    let bucket = bounds.firstIndex { nanoseconds <= $0 } ?? bounds.count
    let start = number * Self.width
    cells.withUnsafeMutableBufferPointer { cells in
      cells[start + bucket] += 1
      let (sum, isTooLarge) = cells[start + bounds.count + 1].addingReportingOverflow(nanoseconds)
      cells[start + bounds.count + 1] = isTooLarge ? .max : sum
    }
  }

  /// A histogram: how many durations are in each bucket, and their sum in nanoseconds, at most `Int64.max`.
  subscript(_ number: Int) -> (buckets: [Int], sum: Int64) {
    let cells = cells[(number * Self.width)..<((number + 1) * Self.width)]
    return (cells.dropLast().map(Int.init), cells.last ?? 0)
  }
}
