internal import ArgumentParser
internal import Glibc
internal import Spool
internal import Transfer

struct Add: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Drops a job into a spool.",
    discussion: """
      Several URLs are mirrors of one file, in order of preference. The job is written whole under tmp and then renamed into \
      new, so that no worker sees half of it. Its name is printed.
      """)

  @OptionGroup var spool: SpoolOption

  @Argument(help: ArgumentHelp("Where the file is; more than one are mirrors.", valueName: "url"))
  var urls: [String]

  @Option(name: .shortAndLong, help: "Where the payload goes, below the output root. (default: the URL's last name)")
  var output: String?

  @Option(name: .long, help: "Its size in bytes.")
  var size: String?

  @Option(name: .customLong("crc32"), help: ArgumentHelp("Its CRC-32, eight hexadecimal digits.", valueName: "hex"))
  var crc32: String?

  @Option(name: .long, help: "A header line to send, such as 'Authorization: Bearer …'; may be repeated.")
  var header: [String] = []

  @Flag(name: .long, help: "Replace a file that is there.")
  var overwrite = false

  @Option(name: .long, help: "How often to try. (default: 12)")
  var attempts: String?

  @Option(name: .long, help: "When to give up, such as 2026-12-01T00:00:00Z.")
  var expires: String?

  @Option(name: .long, help: "Idle and perhaps total time, such as '60s 7d'.")
  var timeout: String?

  @Option(name: .customLong("max-size"), help: "What is larger is refused, such as 2G.")
  var maxSize: String?

  @Option(name: .customLong("limit-rate"), help: "Bytes a second, such as 2M.")
  var limitRate: String?

  @Option(
    name: .customLong("min-rate"), help: "Bytes a second that a server has to bring, such as '1k over 5m'; 0: any.")
  var minRate: String?

  @Option(name: .long, help: "How many connections to fetch it over, up to 32. (default: the worker's)")
  var connections: String?

  @Option(name: .long, help: "The job's name. (default: the last name of the output, else of the URL)")
  var name: String?

  func run() throws {
    // What others may do is said with each file that it makes.
    umask(0o027)
    let (text, name) = try job()
    let spool = try spool.open()
    do throws(SpoolError) {
      Terminal.print(try spool.drop(text, as: name).display)
    } catch {
      Terminal.error("the job cannot be dropped: \(error)")
      throw ExitStatus(error).code
    }
  }

  /// Not in `validate()`, which would speak up before an option that doesn't exist is told.
  private func job() throws -> (text: String, name: JobName) {
    do throws(TransferError) {
      try Libcurl.load()
    } catch {
      Terminal.error(error.description)
      throw ExitStatus.unavailable.code
    }
    do {
      return (try jobText(), try jobName())
    } catch let error as ValidationError {
      // Thrown on from here, it would come with the usage of `spoolrun` alone.
      Terminal.error("\(error.message); see `spoolrun add --help`")
      throw ExitStatus.usage.code
    }
  }

  /// The job as text, checked by the reader that a worker uses.
  private func jobText() throws -> String {
    var lines = urls.map { ("url", $0) }
    for (key, value) in [
      ("output", output), ("size", size), ("crc32", crc32), ("attempts", attempts), ("expires", expires),
      ("timeout", timeout), ("max-size", maxSize), ("limit-rate", limitRate), ("min-rate", minRate),
      ("connections", connections),
    ] {
      if let value { lines.append((key, value)) }
    }
    lines += header.map { ("header", $0) }
    if overwrite { lines.append(("overwrite", "yes")) }
    if lines.contains(where: { $0.1.utf8.contains { $0 == 0x0A || $0 == 0x0D } }) {
      throw ValidationError("no value may hold a line break")
    }
    let text = lines.map { "\($0.0): \($0.1)\n" }.joined()
    let parsed = Array(text.utf8).withUnsafeBytes { JobText($0) }
    if let defect = parsed.defect { throw ValidationError(defect.reason) }
    if let expires = parsed.request.expires, expires <= .now() {
      throw ValidationError("--expires: \(expires) is past")
    }
    let parts = try urls.map { url in
      do throws(URLProblem) { return try URLParts(url) } catch { throw ValidationError("url: \(error.reason)") }
    }
    if output == nil, parts[0].lastPathSegment == nil {
      throw ValidationError("the URL ends in no file name: say --output PATH")
    }
    // Several URLs are several files to wget and curl: as mirrors all but one would never be fetched.
    if output == nil, Set(parts.map(\.lastPathSegment)).count > 1 {
      throw ValidationError(
        "the URLs end in different names: one `add` for each file; or say --output PATH if all are mirrors of one")
    }
    return text
  }

  private func jobName() throws -> JobName {
    if let name {
      let fileName = FileName(RawArguments.bytes(of: [name])[0])
      guard let job = JobName(fileName) else {
        throw ValidationError("--name: \(JobName.defect(of: fileName) ?? "its name starts with a dot")")
      }
      return job
    }
    // From the output, or the URL; cut, and without what a job's name may not have, nor the dash by which every command
    // would take it for an option.
    let source =
      output?.split(separator: "/").last.map(String.init) ?? (try? URLParts(urls[0]))?.lastPathSegment ?? "job"
    var bytes = Array(source.utf8.drop { $0 == 0x2E || $0 == 0x2D }.prefix(JobName.maximumLength - 10))
    if FileName(bytes).isData { bytes.removeLast(FileName.dataSuffix.count) }
    return JobName(FileName(bytes)) ?? JobName(FileName("job"))!
  }
}
