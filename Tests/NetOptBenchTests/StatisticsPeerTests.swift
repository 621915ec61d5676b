import Glibc
import NetOptCore
import Testing

@testable import NetOptBench

/// Compares the statistics with those of SciPy and NumPy.
@Suite(.enabled("\(BenchPeers.missing)") { try await BenchPeers.areInstalled })
struct StatisticsPeerTests {
  @Test("the statistics of 100 data sets agree with SciPy and NumPy")
  func dataSets() async throws {
    var noise = Noise(seed: 2026)
    let sets = (0..<100).map { Self.dataSet($0, &noise) }
    let lines = try await BenchPeers.run("statistics", on: JSONValue.array(sets).description)
    #expect(lines == ["checked 100 sets, 200 intervals"])
  }

  /// A data set of 6 to 400 pairs with netopt's statistics of it, as `bench_peers.py` reads it. The number of
  /// the data set selects one of four kinds: normal noise, noise with long tails, differences with ties, and
  /// differences with ties and zeros.
  private static func dataSet(_ number: Int, _ noise: inout Noise) -> JSONValue {
    let count = 6 + (number < 40 ? number : noise.integer(below: 395))
    func pair() -> (Double, Double) {
      let (a, b) = (noise.normal(), noise.normal())
      switch number % 4 {
      case 0: return (100 + a, 100.2 + b)
      case 1: return (100 * a * a * a, 100 * b * b * b + 5)
      case 2: return ((1000 * (20 + a)).rounded(), (1000 * (20 + b)).rounded() + 0.5)
      default: return ((20 + 3 * a).rounded(), (20 + 3 * b).rounded())
      }
    }
    let pairs = (0..<count).map { _ in pair() }
    let (x, y) = (pairs.map(\.0), pairs.map(\.1))
    let test = SignedRank(zip(x, y).map { $0 - $1 }, isSerial: false)
    let sorted = x.sorted()
    let middle = sorted[Percentile.p50.nearestRank(of: count) - 1]
    let distances = x.map { abs($0 - middle) }.sorted()
    let failures = noise.integer(below: count + 1)
    let wilson = WilsonInterval.interval(failures, of: count, confidence: 0.95)
    let freedom = 2 + 50 * noise.uniform()
    let p = (0..<(1 + number % 6)).map { _ in noise.uniform() * noise.uniform() }
    let order = OrderStatistics()
    return [
      "x": .numbers(x), "y": .numbers(y), "method": .string(test.method.rawValue), "p": .number(test.p),
      "shift": .number(test.shift ?? .nan),
      "intervals": .array(
        [0.95, 0.99].map { level in
          .array([
            .number(level),
            test.interval(confidence: level).map { .numbers([$0.lowerBound, $0.upperBound]) } ?? .null,
          ])
        }),
      "percentiles": .array(
        Percentile.reported.map { percentile in
          let ranks = order.ranks(of: percentile, count: count)
          return .array([
            .number(percentile.share), .number(sorted[percentile.nearestRank(of: count) - 1]),
            ranks.map { [.integer(Int64($0.lowerBound)), .integer(Int64($0.upperBound))] } ?? .null,
          ])
        }),
      "mad": .number(distances[Percentile.p50.nearestRank(of: count) - 1]),
      "tau": .number(KendallTau.b(x, y) ?? .nan),
      "wilson": [
        "k": .integer(Int64(failures)), "n": .integer(Int64(count)), "low": .number(wilson.lowerBound),
        "high": .number(wilson.upperBound),
      ],
      "freedom": .number(freedom), "t": .number(StudentDistribution.upperQuantile(0.025, freedom: freedom)),
      "holm": ["values": .numbers(p), "adjusted": .numbers(Holm.adjusted(p))],
    ]
  }

  @Test("histograms and their encoding agree with hdrhistogram")
  func histograms() async throws {
    var noise = Noise(seed: 7)
    let sets = (0..<20).map { number in
      (0..<(number * 50 + 1)).map { _ in Int64(1000 * exp(2.5 * noise.normal() + Double(number) / 3)) }
    }
    let documents = sets.map { values -> JSONValue in
      var histogram = HDRHistogram()
      for value in values { histogram.record(value) }
      let percentiles = [50.0, 90, 99, 100].map { percentile -> JSONValue in
        // The library hdrhistogram computes the rank of a percentile in this way.
        let rank = max(1, UInt64(percentile / 100 * Double(values.count) + 0.5))
        return [.number(percentile), .optional(histogram.value(atRank: rank))]
      }
      return [
        "values": .array(values.map(JSONValue.integer)), "encoded": .string(histogram.encoded),
        "percentiles": .array(percentiles),
      ]
    }
    let lines = try await BenchPeers.run("histograms", on: JSONValue.array(documents).description)
    #expect(lines.count == 1, "\(lines)")
    let theirs = try HDRHistogram(encoded: String(lines[0].dropFirst("encoded ".count)))
    var ours = HDRHistogram()
    for value in sets[0] { ours.record(value) }
    #expect(theirs == ours)
  }
}

extension JSONValue {
  /// An array of numbers.
  static func numbers(_ values: [Double]) -> JSONValue { .array(values.map(JSONValue.number)) }
}
