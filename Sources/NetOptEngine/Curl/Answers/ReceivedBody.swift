import NetOptCore

/// The received part of a response's body that has not been passed on to the caller, in chunks. Confined to
/// the loop.
struct ReceivedBody {
  /// The size of a chunk, in bytes. It is below 128 KiB, because the allocator maps each block of 128 KiB or
  /// more into memory, and unmaps the block when it is freed (mallopt(3), M_MMAP_THRESHOLD). Mapping and
  /// unmapping cost more than receiving the bytes.
  private static let chunk = 64 * 1024
  /// A body whose length is known is stored as one chunk up to this length in bytes. The limit is below 128
  /// KiB for the reason that `chunk` gives.
  private static let wholeBody = 120 * 1024
  /// A last chunk with fewer bytes than this is passed on as a copy without spare capacity. Otherwise a
  /// caller that keeps the chunks of a body that arrives byte by byte would keep 64 KiB for each byte.
  private static let small = chunk / 8

  private let spareChunks: SpareChunks
  /// The chunk that is being filled.
  private var last: [UInt8] = []
  /// The full chunks, in order. They come before `last`.
  private var full: [[UInt8]] = []
  /// The number of bytes in all chunks.
  private(set) var count = 0

  init(_ spareChunks: SpareChunks) { self.spareChunks = spareChunks }

  /// Appends received bytes.
  ///
  /// - Parameter length: the length of the whole body in bytes; `nil` if it is unknown.
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
