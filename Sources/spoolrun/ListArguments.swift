internal import ArgumentParser
internal import Spool
internal import SpoolLists
internal import Transfer

extension ListFormat: ExpressibleByArgument {}

/// The options of `spoolrun add` for lists.
struct ListArguments: ParsableArguments {
  @Option(
    name: .long,
    help: ArgumentHelp("Drop a job for each entry of a list; - for standard input.", valueName: "file"),
    completion: .file())
  var from: String?

  @Option(name: .long, help: ArgumentHelp("The list's format. (default: by its looks)", valueName: "format"))
  var format: ListFormat?

  @Option(name: .long, help: ArgumentHelp("The URL that the files of a list of checksums are below.", valueName: "url"))
  var base: String?

  @Flag(name: .long, help: "Skip lines and options of a list that have no meaning here, instead of refusing the list.")
  var ignoreUnknown = false

  /// - Throws: ``ValidationError`` where an option is given that means nothing without a list.
  func refuseWithoutFile() throws {
    if format != nil || base != nil || ignoreUnknown {
      throw ValidationError("--format, --base and --ignore-unknown are for a list: add --from FILE")
    }
  }

  /// The command for the list `file`.
  /// - Throws: the exit status, after a message on stderr.
  func command(_ file: String, _ job: JobOptions<AllJobKeys>) throws -> AddList {
    try Libcurl.loadOrExit()
    do {
      var request = JobRequest()
      for (key, text) in job.given where key.name != "output" {
        if key.scope == .job, key.name != "root" {
          throw ValidationError("--\(key.name) belongs to one file: it cannot be given for a list")
        }
        do throws(Defect) { try request.set(key, text) } catch { throw ValidationError(error.reason) }
      }
      let path = file == "-" ? nil : RawArguments.bytes(of: [file])[0]
      return AddList(
        title: path.map { escaped($0) } ?? "standard input", path: path,
        options: try options(),
        request: request, directory: try job.text("output").map(Self.directory))
    } catch let error as ValidationError {
      throw Self.refusal(error.message)
    }
  }

  /// How the list is to be read.
  /// - Throws: ``ValidationError`` for a base that is no URL.
  func options() throws -> ListOptions {
    ListOptions(format: format, base: try base.map(Self.checked), ignoresUnknown: ignoreUnknown)
  }

  /// Refuses an option for one file beside `--from`.
  static func refusal(_ message: String) -> any Error {
    // If a ValidationError were thrown on, the usage of `spoolrun` would be printed with it, not that of `add`.
    Terminal.error("\(message); see `spoolrun add --help`")
    return ExitStatus.usage.code
  }

  /// The URL that files are below.
  private static func checked(_ base: String) throws -> String {
    if base.prefix(before: "?#").endIndex < base.endIndex {
      throw ValidationError("--base: must end in a path, not in a query or fragment")
    }
    // A directory of an FTP server is no URL of a file.
    do throws(URLProblem) { _ = try URLParts(base.ends(with: "/") ? base + "x" : base) } catch {
      throw ValidationError("--base: \(error.reason)")
    }
    return base
  }

  private static func directory(_ text: String) throws -> String {
    guard text.ends(with: "/"), text != "/" else {
      throw ValidationError("--output must be a directory for a list, with a slash at the end, such as sets/")
    }
    let path = String(Substring(text.utf8.dropLast()))
    if let reason = OutputPath.defect(of: path) { throw ValidationError("--output: \(reason)") }
    return path
  }
}
