internal import Spool
internal import SpoolLists
internal import Transfer

/// Turns the jobs of a list into those that are dropped: checks them, and gives each an output and a name of its own.
struct ListPlan {
  /// The keys that apply to all jobs of the list that do not set them.
  private let options: JobRequest
  /// The directory below the output root for all of them, without a slash at the end; nil for none.
  private let directory: String?
  private let now = Timestamp.now()
  private var seen = ListNames()
  private var outputs = ListNames()
  private var names = ListNames()

  init(_ options: JobRequest, directory: String?) {
    self.options = options
    self.directory = directory
  }

  /// - Returns: nil where an earlier line asks for the same.
  /// - Throws: ``Defect`` with a line of the list.
  mutating func job(_ listed: ListedJob) throws(Defect) -> (text: String, name: JobName)? {
    var request = listed.request.inheriting(options)
    request.root = request.root ?? options.root
    let parts = try Self.urls(of: request)
    if let expires = request.expires, expires <= now {
      throw Defect(line: listed.line, reason: "expires: \(expires) is past")
    }
    let directory = directory ?? listed.directory
    var text = request.text
    guard seen.take(Array("\(directory ?? "")\n\(text)".utf8)) else { return nil }
    let output = try output(of: request, parts, directory, listed.line)
    if directory != nil || output.isNumbered || request.output?.isDirectory == true {
      request.output = .init(text: output.path, number: listed.line)
      text = request.text
    }
    // Everything else was checked when it was read.
    if text.utf8.count > JobText.maximumRequest {
      throw Defect(line: listed.line, reason: "a job has at most 64 KiB")
    }
    return (text, name(like: JobName(like: output.path)))
  }

  private static func urls(of request: JobRequest) throws(Defect) -> [URLParts] {
    var parts: [URLParts] = []
    for url in request.urls {
      do throws(URLProblem) { parts.append(try URLParts(url.text)) } catch {
        throw Defect(line: url.number, reason: "url: \(error.reason)")
      }
    }
    return parts
  }

  /// Where the payload goes. An output that the list names is taken as it is. The name of a URL gets a number where an
  /// earlier job of the list has it.
  private mutating func output(
    of request: JobRequest, _ parts: [URLParts], _ directory: String?, _ line: Int
  ) throws(Defect) -> (path: String, isNumbered: Bool) {
    let parent = directory.map { $0 + "/" } ?? ""
    let isNamedByURL = request.output?.isDirectory ?? true
    guard let own = request.outputText(named: parts.first?.lastPathSegment) else {
      throw Defect(line: line, reason: "the URL does not end in a file name: it needs an output")
    }
    let path = parent + own
    if let reason = OutputPath.defect(of: path) {
      let advice = directory != nil && self.directory == nil ? "; -o DIR/ takes the place of the list's directory" : ""
      throw Defect(line: line, reason: "the output `\(escaped(path.prefix(80)))` \(reason)\(advice)")
    }
    if !isNamedByURL {
      guard outputs.take(Array(path.utf8)) else {
        throw Defect(line: line, reason: "an earlier line has the output `\(escaped(path))`, but is another job")
      }
      return (path, false)
    }
    if Set(parts.map(\.lastPathSegment)).count > 1 {
      throw Defect(
        line: line, reason: "the URLs end in different names: if they are mirrors of one file, name its output")
    }
    let found = outputs.name(Array(path.utf8)) { number in
      let slash = path.utf8.lastIndex(of: 0x2F).map { path.utf8.index(after: $0) } ?? path.startIndex
      let name = FileName(String(path[slash...])).numbered(number, limit: FileName.maximumLength)
      return Array(path.utf8[..<slash]) + name.bytes
    }
    // Cut to size, a name may end in half a character.
    let text = String(decoding: found, as: UTF8.self)
    return (text, !text.utf8.elementsEqual(path.utf8))
  }

  private mutating func name(like wanted: JobName) -> JobName {
    var result = wanted
    _ = names.name(wanted.fileName.bytes) { number in
      result = wanted.numbered(number)
      return result.fileName.bytes
    }
    return result
  }
}
