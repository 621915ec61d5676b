// swift-tools-version: 6.2
import PackageDescription

/// Fuzzing with libFuzzer: `make fuzz`. This is a separate package, because the program links only with
/// libFuzzer, and only the Makefile tells the linker where libFuzzer is.
let package = Package(
  name: "netopt-fuzz",
  dependencies: [.package(name: "netopt", path: "..")],
  targets: [
    .executableTarget(
      name: "netopt-fuzz",
      dependencies: [.product(name: "NetOptFuzzing", package: "netopt"), "CFuzzer"],
      swiftSettings: [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)],
      linkerSettings: [.linkedLibrary("stdc++")]),
    .systemLibrary(name: "CFuzzer"),
  ]
)
