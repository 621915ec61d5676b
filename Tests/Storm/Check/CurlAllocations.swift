import CCurl
import Glibc
import NetOptLocking

/// What libcurl holds allocated: easy handles, connections, lists. What a client leaves behind is seen here.
enum CurlAllocations {
  /// The size of each allocation by its address.
  private static let sizes = Locked<[UInt: Int]>([:])
  /// How much of an allocation is shown.
  private static let shown = 48

  /// How many allocations libcurl holds.
  static var live: Int { sizes.withLock { $0.count } }

  /// The allocations that libcurl holds: size, and the text in it.
  static var descriptions: [String] {
    // Nothing else uses libcurl when this is asked for, so what is held stays.
    sizes.withLock { sizes in
      sizes.prefix(20).map { address, size in
        guard let pointer = UnsafeRawPointer(bitPattern: address) else { return "" }
        let bytes = UnsafeRawBufferPointer(start: pointer, count: min(size, shown))
        let text = bytes.map { (0x20..<0x7f).contains($0) ? Character(UnicodeScalar($0)) : "." }
        return "\(size) bytes \"\(String(text))\""
      }
    }
  }

  /// Has libcurl allocate through the table (curl_global_init_mem(3)). To be called before anything else uses libcurl: the
  /// first set-up counts.
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

  @discardableResult
  private static func noted(_ pointer: UnsafeMutableRawPointer?, _ size: Int) -> UnsafeMutableRawPointer? {
    if let pointer { sizes.withLock { $0[UInt(bitPattern: pointer)] = size } }
    return pointer
  }

  /// Before it is freed: another thread may get the same address at once.
  private static func forget(_ pointer: UnsafeMutableRawPointer?) {
    if let pointer { sizes.withLock { _ = $0.removeValue(forKey: UInt(bitPattern: pointer)) } }
  }
}
