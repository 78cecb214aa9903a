internal import CLinux
internal import ArgumentParser
internal import Glibc
internal import Spool
internal import SpoolLists
internal import SystemPackage
internal import Transfer

struct GetPlan {
  let urls: [String]
  let list: ListArguments
  let output: String?
  let given: [(key: JobKey, text: String)]

  func items() throws -> [GetItem] {
    let place = GetPlace(output)
    if let output, output == "-" || place.name != nil && leadsToStream(output, place) {
      throw refusal("-o \(escaped(output)): \(ForeignOption.noStream)")
    }
    try GivenJob.checked(by: "get") { if list.from == nil { try list.refuseWithoutFile() } }
    if urls.isEmpty, list.from == nil, given.isEmpty, place.name == nil {
      let left = try OwnSpools.left(in: place.directory)
      if !left.isEmpty, let directory = try? realPath(place.directory) {
        return left.map { job in
          GetItem(asked: job.asked, directory: directory, name: job.name, shown: place.shown(job.name), known: job.job)
        }
      }
    }
    let wanted = try list.from.map { try listed($0, place) } ?? place.name.map { [try file($0, urls)] } ?? files(place)
    let perFile = given.first { $0.key.scope == .job }
    if wanted.count > 1, let perFile { throw refusal("--\(perFile.key.name) is for one file: get each by itself") }
    if let expires = wanted.compactMap(\.asked.expires).min(), expires <= .now() {
      throw refusal("--expires: \(expires) is past")
    }
    // Nothing is made for a command that is refused.
    let directory = try absolute(place.directory)
    if GetDirectory.isInside(directory) { throw refusal("no file goes into the spool of a `spoolrun get`") }
    return wanted.map { name, asked in GetItem(asked: asked, directory: directory, name: name, shown: place.shown(name))
    }
  }

  private func listed(_ file: String, _ place: GetPlace) throws -> [(name: String, asked: JobRequest)] {
    guard urls.isEmpty else { throw refusal("either a list by --from, or URLs") }
    guard place.name == nil else { throw refusal("--output: for a list it names a directory: use --output DIR/") }
    do {
      let files = try files(ofList: file)
      if files.isEmpty { throw refusal("the list names no file") }
      return files
    } catch let problems as ListProblems {
      ListComplaint(title: ListArguments.title(file), problems: problems).refuse(
        leavesOut: list.ignoreUnknown, "nothing is fetched")
      throw ExitStatus.usage.code
    } catch let defect as Defect {
      let line = defect.line.map { "\(ListArguments.title(file)):\($0): " } ?? ""
      throw refusal("\(line)\(defect.reason)")
    } catch let error as ValidationError {
      throw refusal(error.message)
    } catch let error as SpoolError {
      throw ExitStatus.noSpool.after("\(error)")
    }
  }

  /// A file for each URL, by the name that the URL gives.
  private func files(_ place: GetPlace) throws -> [(name: String, asked: JobRequest)] {
    if urls.isEmpty, given.contains(where: { $0.key.name == JobKey.resolve.name }) {
      throw refusal("--resolve without a URL gives no name: use --output FILE")
    }
    if urls.isEmpty, try !OwnSpools.left(in: place.directory).isEmpty {
      throw refusal("options need the URLs again: without URLs and options, `get` goes on with what is here")
    }
    if urls.isEmpty {
      throw refusal("name the URL of a file, or a list with --from; there is nothing here to go on with")
    }
    let names = try urls.map { url in
      do throws(Defect) {
        if let name = try Self.name(of: url) { return name }
      } catch {
        let isFile = access(url, R_OK) == 0 && !isDirectory(url)
        let hint = isFile ? "; this is a file: --from reads the URLs in it" : ""
        throw refusal("\(escaped(shownURL(url))): \(error.reason)\(hint)")
      }
      throw refusal("the URL does not end in a file name: use --output FILE")
    }
    var seen: Set<ExactText> = []
    return try zip(PayloadName.distinct(zip(names, urls).map { (name: $0, url: $1) }), urls)
      .filter { seen.insert($0.0.exact).inserted }.map { try file($0, [$1]) }
  }

  /// Whether it is a device, a pipe or a socket, or leads to one or to an open file, as /dev/stdout does.
  private func leadsToStream(_ path: String, _ place: GetPlace) -> Bool {
    if let status = fileStatus(at: path), status.st_mode & S_IFMT != S_IFREG { return true }
    let parent = (try? realPath(place.directory)) ?? ""
    return parent == "/dev" || parent.begins(with: "/proc/")
  }

  /// One file, checked by the reader that a worker uses.
  private func file(_ name: String, _ urls: [String]) throws -> (name: String, asked: JobRequest) {
    do {
      let names = try urls.map { try Self.name(of: $0) }
      let asked = try JobRequest(urls: urls, given: given)
      // curl takes several URLs for several files. As mirrors, all but one would never be fetched.
      if Set(names.compactMap { $0?.exact }).count > 1, !asked.expected.provesContent {
        throw refusal(
          "the URLs end in different names: get each by itself, or all with -o DIR/; if they are mirrors of one file, "
            + "a digest proves it, such as --sha256")
      }
      // Only the URL can give a name with blanks around it.
      let name = names.first??.exact == name.exact ? name : String(trimmed(name[...]))
      if let reason = OutputPath.defect(of: name) { throw refusal("output: \(reason)") }
      var placed = asked
      placed.setOutput(name)
      _ = try placed.readBack()
      return (name, asked)
    } catch let defect as Defect {
      throw refusal(defect.reason)
    }
  }

  /// The real path of a directory, made when it is missing: then no link of the path can lead a payload elsewhere.
  private func absolute(_ directory: String) throws -> String {
    makeDirectories(above: directory, mode: 0o777)
    _ = mkdir(directory, 0o777)
    do throws(Errno) { return try realPath(directory) } catch {
      let hint = error.rawValue == EILSEQ ? ": its path is not UTF-8; use a symbolic link to it, as --output LINK/" : ""
      throw ExitStatus.cannotCreate.after("\(escaped(directory)): \(error)\(hint)")
    }
  }

  private func refusal(_ reason: String) -> any Error { ExitStatus.refusal(reason, by: "get") }

  /// The path of each file below the person's directory, and what the list asks for. Strangers choose these paths, so
  /// no directory among them is entered here: the worker does that, by the rules of `output:`.
  /// - Parameter file: the list; `-` for standard input.
  /// - Throws: ``ListProblems``; ``Defect`` with the line of the list, or of nothing for an option; ``SpoolError``
  ///   where it cannot be read; `ValidationError`.
  private func files(ofList file: String) throws -> [(name: String, asked: JobRequest)] {
    var options = JobRequest()
    for (key, text) in given {
      if key.scope == .job { throw Defect(line: nil, reason: "--\(key.name) is for one file") }
      try options.set(key, text)
    }
    let reader = try ListReader(ListArguments.path(file), list.options())
    var plan = ListPlan(options, directory: nil, schemes: .all, takesRoots: false)
    var jobs: [CheckedJob] = []
    let tally = try plan.read(reader, leavesOut: list.ignoreUnknown) { jobs.append($0) }
    ListComplaint(title: ListArguments.title(file), problems: tally.problems).tellWhatIsLeftOut()
    var marked: [String] = []
    let files = try jobs.map { job in
      var asked = (try plan.settle(job) ?? job).request
      let last = try asked.urls.first.flatMap { url throws(Defect) in try Self.name(of: url.text) }
      guard let name = asked.outputText(named: last) else {
        throw Defect(line: job.line, reason: "the URL does not end in a file name: it needs an output")
      }
      if let wanted = job.wanted, let given = asked.output?.text, given.exact != wanted.exact { marked.append(name) }
      if GetDirectory.isInside(name) {
        throw Defect(line: job.line, reason: "nothing of a list may go into a \(GetDirectory.name)")
      }
      let isOfURL = asked.output?.isDirectory ?? true
      asked.output = nil
      return (name: isOfURL ? name : String(trimmed(name[...])), asked: asked)
    }
    tell(marked)
    return files
  }

  private func tell(_ marked: [String]) {
    guard let example = marked.last else { return }
    Terminal.error(
      "\(marked.count) of the files get a mark in their names, such as \(escaped(example)), because others of the list "
        + "have the same", .info)
  }

  /// The file name that a URL ends in; nil if it ends in none.
  private static func name(of url: String) throws(Defect) -> String? {
    do throws(URLProblem) { return try URLParts(url).lastPathSegment } catch {
      throw Defect(line: nil, reason: "url: \(error.reason)")
    }
  }
}

struct GetItem {
  /// The URLs, of which several are mirrors, and what is said of the file, without its place.
  let asked: JobRequest
  /// The absolute path of the file's directory, without links.
  let directory: String
  /// The file's name there; from a list it may be a path.
  let name: String
  /// The file as the person named it.
  let shown: String
  /// Its job, if `spoolrun url` has given that another URL than the one that its name is made of.
  var known: JobName?
  /// What the receipt says of a file that is to be fetched again. If its job is still there, that keeps its text.
  var again: Journal.Verified?
  /// The file's permissions if nobody has said any.
  var usualMode: PayloadMode?

  /// The job's name: it depends on URL, or else the text of `resolve:`, and file, so that the same command continues
  /// the same job.
  var job: JobName {
    if let known { return known }
    let source = asked.knownURL ?? asked.resolve.map { "resolve: \($0.text)" } ?? ""
    return JobName(like: name, suffix: "-" + PayloadName.fingerprint(of: [source, path]).prefix(16))
  }

  var root: String { NamedRoots.name(for: directory) }

  private var path: String { directory == "/" ? "/\(name)" : "\(directory)/\(name)" }

  var reach: OutputReach { name.utf8.contains(UInt8(ascii: "/")) ? .below : .directly }

  var request: JobRequest {
    var request = asked
    request.setOutput(name)
    request.root = JobRequest.Line(text: root, number: 0)
    request.mode = request.mode ?? usualMode
    return request
  }
}

extension JobRequest {
  /// What `get` knows a job by.
  var knownURL: String? { urls.first.map { URLText($0.text).withoutPassword } }
}

/// Where `-o` puts files.
private struct GetPlace {
  /// As the person named it; `.` for the current one.
  let directory: String
  /// nil where the URL gives the name.
  let name: String?

  /// - Parameter output: of `-o`: `DIR/`, an existing `DIR`, or `FILE`; nil without it.
  init(_ output: String?) {
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
