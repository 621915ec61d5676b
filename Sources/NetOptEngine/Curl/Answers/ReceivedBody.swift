import NetOptCore

/// The received part of a response's body that was not handed over yet, in chunks. Confined to the loop.
struct ReceivedBody {
  /// The size of a chunk, in bytes. The allocator maps and unmaps larger blocks each time (mallopt(3),
  /// M_MMAP_THRESHOLD), which costs more than receiving the bytes.
  private static let chunk = 64 * 1024
  /// The longest body of known length that is stored as one chunk, in bytes. It too stays below the size from
  /// which the allocator maps blocks.
  private static let wholeBody = 120 * 1024
  /// A last chunk with fewer bytes is handed over as a copy without spare capacity. If the consumer kept the
  /// full capacity, a body that arrives byte by byte would take thousands of times its size.
  private static let small = chunk / 8

  private let spareChunks: SpareChunks
  private var last: [UInt8] = []
  /// The full chunks before the last one.
  private var full: [[UInt8]] = []
  /// The number of bytes in all chunks.
  private(set) var count = 0

  init(_ spareChunks: SpareChunks) { self.spareChunks = spareChunks }

  /// - Parameter length: the length of the whole body in bytes, if it is known.
  mutating func append(_ bytes: UnsafeRawBufferPointer, ofLength length: Int64?) {
    if last.isEmpty {
      // A body that arrives at once gets exactly the memory that it needs.
      let length = length ?? .max
      if length > Int64(Self.wholeBody) {
        last = spareChunks.take(Self.chunk)
      } else if bytes.count < length {
        last.reserveCapacity(Int(length))
      }
    } else if last.count + bytes.count > max(Self.chunk, last.capacity) {
      full.append(last)
      last = spareChunks.take(Self.chunk)
    }
    last.append(contentsOf: bytes)
    count += bytes.count
  }

  /// Removes and returns the received bytes, as chunks.
  mutating func takeChunks() -> [[UInt8]] {
    defer { removeAll() }
    if last.isEmpty { return full }
    full.append(last)
    for chunk in full where chunk.capacity >= Self.chunk { spareChunks.handOut(chunk) }
    if last.count < Self.small, last.capacity > 2 * Self.small {
      full[full.count - 1] = last.withUnsafeBytes { [UInt8]($0) }
    }
    return full
  }

  /// Removes and returns the received bytes, as one array.
  mutating func takeAll() -> [UInt8] {
    defer { removeAll() }
    if full.isEmpty { return last }
    var whole: [UInt8] = []
    whole.reserveCapacity(count)
    for chunk in full { whole += chunk }
    whole += last
    return whole
  }

  private mutating func removeAll() {
    last = []
    full = []
    count = 0
  }
}
