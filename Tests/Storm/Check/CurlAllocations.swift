import CCurl
import Glibc
import Synchronization

/// Counts what libcurl holds allocated: easy handles, connections, lists. What a client leaves behind is seen here.
enum CurlAllocations {
  private static let count = Atomic<Int>(0)

  /// How many allocations libcurl holds.
  static var live: Int { count.load(ordering: .relaxed) }

  /// Has libcurl allocate through the counter (curl_global_init_mem(3)). To be called before anything else uses libcurl: the
  /// first set-up counts.
  static func install() {
    curl_global_init_mem(
      Int(CURL_GLOBAL_DEFAULT),
      { size in CurlAllocations.noted(malloc(size)) },
      { pointer in
        if pointer != nil { CurlAllocations.count.subtract(1, ordering: .relaxed) }
        free(pointer)
      },
      { pointer, size in pointer == nil ? CurlAllocations.noted(malloc(size)) : realloc(pointer, size) },
      { text in
        guard let text, let copy = strdup(text) else { return nil }
        CurlAllocations.count.add(1, ordering: .relaxed)
        return copy
      },
      { number, size in CurlAllocations.noted(calloc(number, size)) })
  }

  private static func noted(_ pointer: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    if pointer != nil { count.add(1, ordering: .relaxed) }
    return pointer
  }
}
