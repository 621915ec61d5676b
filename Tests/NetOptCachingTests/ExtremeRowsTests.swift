import Glibc
import NetOptCore
import NetOptSQLite
import NetOptTestSupport
import TestTools
import Testing

@testable import NetOptCaching

/// The cache must neither trap nor hang, whatever numbers its database, its dates and its limits have. The
/// tests run in child processes, because a trap ends the process.
@Suite struct ExtremeRowsTests {
  /// The numeric columns of the table `entries`.
  private static let columns = ["received", "size", "cost", "hits", "priority", "length"]

  @Test("the disk store works with extreme numbers in each numeric column of its database")
  func extremeRows() async throws {
    let note = try LastNote()
    await #expect(processExitsWith: .success) { [path = note.path as String] in
      // The alarm ends a process that hangs.
      alarm(300)
      let note = LastNote(path)
      let directory = try TemporaryDirectory.make("rows") + "/cache"
      func store(_ limits: CacheLimits = .disk) -> DiskStore {
        DiskStore(directory, limits: limits, pause: .zero) { _ in }
      }
      let keys = try (0..<3).map { try Samples.key("\($0)") }
      // The tables with the columns that get the numbers.
      var tables = Self.columns.map { ("entries", $0) }
      tables += [("totals", "entries"), ("totals", "bytes"), ("totals", "clock"), ("evictions", "moment")]
      for (table, column) in tables {
        for value in ExtremeNumbers.numerals {
          // If the process traps, the note shows which number in which column caused the trap.
          note.write("\(table).\(column) = \(value)")
          let filled = store()
          for key in keys { filled.insert(Samples.entry(key, body: [UInt8](repeating: 1, count: 3000))) }
          filled.close()
          let database = try Database("\(directory)/responses.db")
          try? database.execute("UPDATE \(table) SET \(column) = \(value)")
          // The low limits make the store read the changed numbers when it evicts entries.
          var limits = CacheLimits(maxBytes: 100_000, maxAge: .seconds(100_000_000))
          limits.maxEntries = 3
          let used = store(limits)
          used.open()
          for key in keys {
            _ = used.entries(for: key)
            used.insert(Samples.entry(key, body: [UInt8](repeating: 2, count: 4000)))
            _ = used.eviction(of: key)
          }
          used.close()
          if let inspection = try? DiskInspection(directory) {
            _ = try? inspection.usage()
            _ = try? inspection.items(upTo: 10)
            _ = try? inspection.verify()
          }
          let last = store()
          last.removeAll()
          last.close()
        }
      }
      note.write("the end")
    }
    #expect(note.text == "the end")
  }

  @Test("ages and lifetimes are never negative, whatever the times of request and receipt")
  func extremeMoments() async throws {
    let note = try LastNote()
    await #expect(processExitsWith: .success) { [path = note.path as String] in
      alarm(300)
      let note = LastNote(path)
      let moments = ExtremeNumbers.integers.map(Int64.init)
      let date = "Sun, 06 Nov 1994 08:49:37 GMT"
      let heads: [HeaderFields] = [
        ["Date": date, "Expires": date], ["Expires": date, "Age": "9223372036854775807"],
        ["Last-Modified": date],
        ["Cache-Control": "max-age=9223372036854775807"],
      ]
      for fields in heads {
        for requested in moments {
          for received in moments {
            note.write("\(fields), asked for at \(requested), received at \(received)")
            let terms = ResponseTerms(status: 200, fields: fields, requested: requested, received: received)
            #expect(terms.freshness.lifetime >= 0)
            for now in moments {
              #expect(terms.age(at: now) >= 0)
              _ = terms.timeLeft(at: now)
            }
          }
        }
      }
      note.write("the end")
    }
    #expect(note.text == "the end")
  }

  @Test("both stores work with extreme limits")
  func extremeLimits() async throws {
    let note = try LastNote()
    await #expect(processExitsWith: .success) { [path = note.path as String] in
      alarm(300)
      let note = LastNote(path)
      let directory = try TemporaryDirectory.make("limits")
      for seed in 1...200 as ClosedRange<UInt64> {
        var random = SplitMix64(seed: seed)
        var limits = CacheLimits(
          maxBytes: random.isOne(in: 3) ? 1 << 20 : random.element(of: ExtremeNumbers.integers))
        if random.isOne(in: 2) { limits.maxEntries = random.element(of: ExtremeNumbers.integers) }
        if random.isOne(in: 2) { limits.maxAge = random.element(of: ExtremeNumbers.durations) }
        note.write("seed \(seed): \(limits)")
        let stores: [any CacheStore] = [
          MemoryStore(limits), DiskStore("\(directory)/\(seed)", limits: limits, pause: .zero) { _ in },
        ]
        for store in stores {
          for number in 0..<20 {
            let key = try Samples.key("\(number)")
            store.insert(
              Samples.entry(
                key, body: [UInt8](repeating: 1, count: 100 * number), received: WallClock.now(),
                cost: Int64(random.element(of: ExtremeNumbers.integers)),
                expiry: Int64(random.element(of: ExtremeNumbers.integers)),
                version: Int64(random.element(of: ExtremeNumbers.integers))))
            _ = store.entries(for: key)
          }
          store.removeAll()
        }
      }
      note.write("the end")
    }
    #expect(note.text == "the end")
  }
}
