internal import Spool

/// One file that a person wants now.
struct GetItem {
  /// The URLs, of which several are mirrors, and what is said of the file, without its place.
  let asked: JobRequest
  /// The absolute path of the file's directory, without links.
  let directory: String
  /// The file's name there; from a list it may be a path.
  let name: String
  /// The file as the person named it.
  let shown: String
  /// The file's permissions if nobody has said any.
  var usualMode: PayloadMode?

  /// The job's name: it depends on URL, or else the text of `resolve:`, and file, so that the same command continues
  /// the same job.
  var job: JobName {
    let source = asked.urls.first?.text ?? asked.resolve.map { "resolve: \($0.text)" } ?? ""
    return JobName(like: name, suffix: "-" + PayloadName.fingerprint(of: [source, path]).prefix(16))
  }

  /// The name in the spool's `roots` for the directory.
  var root: String { Spool.rootName(of: directory) }

  private var path: String { directory == "/" ? "/\(name)" : "\(directory)/\(name)" }

  var reach: OutputReach { name.utf8.contains(UInt8(ascii: "/")) ? .below : .directly }

  /// What the job asks for.
  var request: JobRequest {
    var request = asked
    request.setOutput(name)
    request.root = JobRequest.Line(text: root, number: 0)
    request.mode = request.mode ?? usualMode
    return request
  }
}

/// Where `-o` puts files: pure but for the question whether something is a directory.
struct GetPlace: Equatable {
  /// As the person named it; `.` for the current one.
  let directory: String
  /// nil where the URL gives the name.
  let name: String?

  /// - Parameters:
  ///   - output: of `-o`: `DIR/`, an existing `DIR`, or `FILE`; nil without it.
  ///   - isDirectory: whether a path leads to an existing directory.
  init(_ output: String?, isDirectory: (String) -> Bool) {
    guard let output, !output.isEmpty else {
      (directory, name) = (".", nil)
      return
    }
    let slash = output.utf8.lastIndex(of: UInt8(ascii: "/"))
    if slash == output.utf8.index(before: output.endIndex) || isDirectory(output) {
      (directory, name) = (output, nil)
      return
    }
    let parent = slash.map { String(output[..<$0]) }
    directory = parent.map { $0.isEmpty ? "/" : $0 } ?? "."
    name = slash.map { String(output[output.utf8.index(after: $0)...]) } ?? output
  }

  /// The path of a file in it, as a person would write it.
  func shown(_ name: String) -> String {
    directory == "." ? name : directory.ends(with: "/") ? directory + name : "\(directory)/\(name)"
  }
}
