import NetOptEngine

/// The versions of netopt and of the libraries it found.
public enum NetOptVersion {
  /// netopt's version (semver.org).
  public static let string = "0.1.0"

  /// The libraries that are used, as they are at run time: libcurl, its TLS library, nghttp2, c-ares.
  public static var libraries: [(name: String, version: String)] {
    CurlLibrary.versions + [("c-ares", AresVersion.string)]
  }
}
