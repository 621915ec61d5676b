import NetOptCore
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCaching

/// Entries of one key that depend on different fields, in both stores.
@Suite struct OverlappingEntriesTests {
  private static func selectors(_ random: inout SplitMix64) -> [CacheEntry.Selector] {
    ["a", "b", "c"].compactMap { name in
      let value = random.below(5)
      return value < 2 ? .init(name: name, value: value == 0 ? nil : "1") : nil
    }
  }

  /// All combinations of the fields on which the entries depend.
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
            // The request selects no entry if a later entry, which it does not match, replaced the entry.
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
