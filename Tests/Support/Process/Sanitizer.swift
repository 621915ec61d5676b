import Glibc

/// Whether this program was built with a sanitizer, which slows it down about tenfold.
package enum Sanitizer {
  package static let isOn = dlsym(nil, "__tsan_init") != nil || dlsym(nil, "__asan_init") != nil
}
