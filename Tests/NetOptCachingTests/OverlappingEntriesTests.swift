import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCaching

/// Both stores, with entries of one key whose selectors name different fields. Several of these entries could
/// match one request. A store must keep at most one of them.
@Suite struct OverlappingEntriesTests {
  /// Random selectors for the fields a, b and c. On average, three of five fields get no selector. The
  /// others get the value "1", or `nil` for a missing field.
  private static func selectors(_ random: inout SplitMix64) -> [CacheEntry.Selector] {
    ["a", "b", "c"].compactMap { name in
      let value = random.below(5)
      return value < 2 ? .init(name: name, value: value == 0 ? nil : "1") : nil
    }
  }

  /// All eight requests that differ in the fields a, b and c. In each request, a field is missing or has the
  /// value "1".
  private static let requests: [[CacheEntry.Selector]] = {
    let values: [String?] = [nil, "1"]
    return values.flatMap { a in
      values.flatMap { b in
        values.map { c in
          [.init(name: "a", value: a), .init(name: "b", value: b), .init(name: "c", value: c)]
        }
      }
    }
  }()

  @Test("a request selects at most one entry, the latest one that it matches", arguments: UInt64(1)...5)
  func oneEntry(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let disk = DiskStore(try TemporaryDirectory.make("overlapping")) { _ in }
    let key = try Samples.key("a")
    for _ in 0..<20 {
      let memory = MemoryStore()
      disk.removeAll(for: key)
      // For each index in `requests`, the number of the latest entry that this request matches.
      var latest: [Int: Int] = [:]
      for number in 0..<6 {
        let selectors = Self.selectors(&random)
        let entry = Samples.entry(
          key, body: Array("\(number)".utf8), selectors: selectors,
          received: 1_600_000_000_000 + Int64(number))
        memory.insert(entry)
        disk.insert(entry)
        for (index, request) in Self.requests.enumerated() where selectors.allSatisfy(request.contains) {
          latest[index] = number
        }
        for entries in [memory.entries(for: key), disk.entries(for: key)] {
          for (index, request) in Self.requests.enumerated() {
            let selected = entries.filter { $0.selectors.allSatisfy(request.contains) }
            #expect(selected.count <= 1)
            // It is right that the request selects no entry if a later entry, which it does not match,
            // replaced the entry that it matches.
            if let entry = selected.first {
              #expect(String(decoding: entry.body, as: UTF8.self) == "\(try #require(latest[index]))")
            }
          }
          #expect(entries.first?.selectors == selectors)
        }
      }
    }
    disk.close()
  }
}
