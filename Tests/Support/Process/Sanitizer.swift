import Glibc

/// The sanitizer that this program was built with, if any.
package enum Sanitizer {
  /// Whether the program was built with the thread sanitizer or the address sanitizer. Either one slows it
  /// down about tenfold.
  package static let isOn = dlsym(nil, "__tsan_init") != nil || dlsym(nil, "__asan_init") != nil
}
