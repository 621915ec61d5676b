import CAres

/// The version of the c-ares library that the program runs with.
package enum AresVersion {
  /// The version, such as `1.18.1`.
  package static var string: String { String(cString: ares_version(nil)) }
}

/// The c-ares library as a whole (ares_library_init(3)).
enum AresLibrary {
  /// The status of the library's initialisation. The first read of this property initialises the library.
  /// netopt never releases the library, because other code in the process may use it.
  static let status: Int32 = ares_library_init(ARES_LIB_INIT_ALL)
}
