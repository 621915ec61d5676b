import CCurl
import Glibc
import NetOptLocking

/// Tracks all memory that libcurl has allocated and not freed: easy handles, connections, lists. What remains
/// after a client is released is a leak.
enum CurlAllocations {
  /// The size of each allocation in bytes, by address.
  private static let sizes = Locked<[UInt: Int]>([:])
  /// How many bytes of an allocation its description shows.
  private static let shown = 48

  /// The number of allocations that libcurl has not freed.
  static var live: Int { sizes.withLock { $0.count } }

  /// Describes up to 20 of the allocations that libcurl has not freed: the size of each, and its first bytes
  /// as text. Call this only while no thread uses libcurl.
  static var descriptions: [String] {
    // No thread uses libcurl during this call, so the allocations stay valid.
    sizes.withLock { sizes in
      sizes.prefix(20).map { address, size in
        guard let pointer = UnsafeRawPointer(bitPattern: address) else { return "" }
        let bytes = UnsafeRawBufferPointer(start: pointer, count: min(size, shown))
        let text = bytes.map { (0x20..<0x7f).contains($0) ? Character(UnicodeScalar($0)) : "." }
        return "\(size) bytes \"\(String(text))\""
      }
    }
  }

  /// Makes libcurl allocate through functions that keep this table (curl_global_init_mem(3)). Must be called
  /// before any other use of libcurl, because only the first initialization of libcurl has an effect.
  static func install() {
    curl_global_init_mem(
      Int(CURL_GLOBAL_DEFAULT),
      { size in CurlAllocations.noted(malloc(size), size) },
      { pointer in
        CurlAllocations.forget(pointer)
        free(pointer)
      },
      { pointer, size in
        CurlAllocations.forget(pointer)
        return CurlAllocations.noted(realloc(pointer, size), size)
      },
      { text in
        guard let text, let copy = strdup(text) else { return nil }
        CurlAllocations.noted(copy, strlen(copy) + 1)
        return copy
      },
      { number, size in CurlAllocations.noted(calloc(number, size), number * size) })
  }

  /// Adds an allocation to the table, unless it failed. Returns the pointer.
  @discardableResult
  private static func noted(_ pointer: UnsafeMutableRawPointer?, _ size: Int) -> UnsafeMutableRawPointer? {
    if let pointer { sizes.withLock { $0[UInt(bitPattern: pointer)] = size } }
    return pointer
  }

  /// Removes an allocation from the table. Called before the memory is freed, because another thread may get
  /// the same address at once.
  private static func forget(_ pointer: UnsafeMutableRawPointer?) {
    if let pointer { sizes.withLock { _ = $0.removeValue(forKey: UInt(bitPattern: pointer)) } }
  }
}
