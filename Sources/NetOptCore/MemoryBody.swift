import NetOptLocking

/// A body that is in memory from the start.
final class MemoryBody: BodySource {
  private let rest: Locked<[UInt8]?>
  let timings: Timings

  init(_ bytes: [UInt8], _ timings: Timings) {
    rest = Locked(bytes.isEmpty ? nil : bytes)
    self.timings = timings
  }

  func next() async throws(NetOptError) -> [UInt8]? {
    rest.withLock { rest in
      defer { rest = nil }
      return rest
    }
  }
}
