import NetOptCore

/// What has come of a response's body and was not handed over yet, in chunks. Confined to the loop.
struct ReceivedBody {
  /// The size of chunks: below what the allocator maps and unmaps each time (mallopt(3), M_MMAP_THRESHOLD), which costs
  /// more than receiving them.
  private static let chunk = 64 * 1024
  /// Up to here, and for the same reason, a body of known length is one chunk.
  private static let wholeBody = 120 * 1024
  /// What is less than this is handed over without the room of a chunk: where it is kept, a body that comes byte by byte
  /// would take thousands of times its size.
  private static let small = chunk / 8

  private let spareChunks: SpareChunks
  private var last: [UInt8] = []
  /// Chunks before the last one that are full.
  private var full: [[UInt8]] = []
  /// How many bytes all of them hold.
  private(set) var count = 0

  init(_ spareChunks: SpareChunks) { self.spareChunks = spareChunks }

  /// - Parameter length: the number of bytes that the whole body has, if that is known.
  mutating func append(_ bytes: UnsafeRawBufferPointer, ofLength length: Int64?) {
    if last.isEmpty {
      // A body that comes at once gets what it needs.
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

  /// Takes what there is, chunk by chunk.
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

  /// Takes what there is as one.
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
