internal import ArgumentParser
internal import Spool
internal import SpoolWorker

/// The options of a worker that shares its spool with other hosts.
struct SharingOptions: ParsableArguments {
  @Option(
    name: .long,
    help: ArgumentHelp(
      "Read the whole spool again after this time without work. (default: 60s, or 10s where inotify is blind)",
      valueName: "time"))
  var rescan: String?

  func validate() throws {
    if let rescan, !(duration(rescan).map { (1...3600).contains($0) } ?? false) {
      throw ValidationError("--rescan must be a time from 1s to 1h, such as 30s")
    }
  }

  func apply(to options: inout WorkerOptions) {
    options.rescan = rescan.flatMap { duration($0) }.map { Int64($0) * 1000 }
  }
}
